#include "hosts/connect/transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "hosts/connect/container_start.h"

namespace phalanx::hosts {

std::string typed(const Target& target, const std::string& command) {
  if (target.container) {
    Target host = target;
    host.container = {};
    const std::string inside = typed_inside(target.container, command);
    return inside.empty() ? fmt::format("{}    # in {} on {}", command, base::printable(to_text(target.container), 200), target.name)
                          : typed(host, inside);
  }
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(" -_./=:,").find(c) != std::string_view::npos;
  };
  const bool needs_shell = !std::all_of(command.begin(), command.end(), plain);
  const std::string quoted = needs_shell ? base::shell_quote({command}) : command;
  if (target.destination.empty()) return command;
  if (target.node_rank > 0) return fmt::format("{}    # on {}", command, target.name);
  if (!target.slurm_job.empty())
    return fmt::format("srun --jobid={} --overlap -N1 -n1 -w {} {}{}", target.slurm_job, target.destination, needs_shell ? "sh -c " : "",
                       quoted);
  return "ssh " + target.destination + " " + quoted;
}

}  // namespace phalanx::hosts
