#include "hosts/connect/transport.h"

#include <sys/wait.h>

#include <fmt/format.h>

#include "hosts/connect/container_start.h"
#include "hosts/connect/deploy.h"
#include "os/files.h"
#include "os/process.h"

namespace phalanx::hosts {

Launch LocalTransport::launch(const Target& target, int) const {
  if (target.container) {
    const std::string trap = target.slurm_job.empty() ? "" : "trap '' TERM; ";
    return {.argv = {"sh", "-c", trap + container_script(target.container, build_, fresh_tag())}, .deploys = true};
  }
  // hosts/connect/slurm.h says why; spawn() gives a child its signals back.
  if (!target.slurm_job.empty()) return {.argv = {"sh", "-c", "trap '' TERM; exec \"$0\" agent", self_}};
  return {.argv = {self_, "agent"}, .program = os::kOwnProgram};
}

base::Error LocalTransport::explain(const Target& target, const Death& death) const {
  std::string how = WIFSIGNALED(death.status) ? "was killed by " + os::signal_name(WTERMSIG(death.status))
                                              : fmt::format("exited with code {}", WEXITSTATUS(death.status));
  return base::fail(base::ErrorKind::kUnreachable, fmt::format("{}: the agent on this machine {}", target.name, how))
      .because(death.stderr_text);
}

}  // namespace phalanx::hosts
