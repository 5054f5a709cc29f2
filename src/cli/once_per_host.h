// A command run once on every host, with what it printed and its exit code: `phalanx exec`, and `phalanx clean` on hosts. No run is
// recorded, nothing is checked before, and the hosts need not reach each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/run_options.h"
#include "cli/launch.h"

namespace phalanx::cli {

struct HostAnswer {
  std::string host;
  std::string output;            // of both streams, in the order of arrival; at most kMostOutput bytes
  bool cut = false;              // there was more
  std::optional<int> exit_code;  // as a shell has it; nothing: the command was stopped before its end
};
inline constexpr size_t kMostOutput = 4 << 20;

struct OnceAnswers {
  std::vector<HostAnswer> hosts;    // in the order of the list; empty where no host was started
  std::vector<base::Error> errors;  // why not, or what was lost
  bool timed_out = false;
};

// Starts on all hosts or on none. options: hosts, environment and connection count, --timeout too. command: argv. by_agent: the command
// is arguments of the agent's own program on each host.
base::Result<OnceAnswers> run_once_per_host(RunOptions options, std::vector<std::string> command, bool by_agent = false);

// Hosts with the same output and exit code are shown together: "h1,h2: exit code 1", then the output, indented.
std::string folded_answers(const std::vector<HostAnswer>& hosts, base::Language language);
// 0 if every host has 0; else the first other one, in the order of the hosts. A command that was stopped counts as 130.
int exit_code_of(const std::vector<HostAnswer>& hosts);

}  // namespace phalanx::cli
