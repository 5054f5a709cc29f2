#include "cli/records/stop_hints.h"

#include <fmt/format.h>

namespace phalanx::cli {

std::string hint_for_silent_launcher(const os::ProcessMark& launcher, const std::string& run_id) {
  if (os::lives(launcher) != os::Lives::kYes) return "phalanx why " + run_id;
  return fmt::format("kill -KILL {0} && phalanx stop {1}   # ends the launcher {0}, and with it the run", launcher.pid, run_id);
}

std::string hint_to_look(const std::string& host, uint32_t pid) {
  const std::string look = pid == 0 ? "ps -eo pid,user,lstart,args" : fmt::format("ps -o pid,user,lstart,args -p {}", pid);
  return host == "localhost" ? look : "ssh " + host + " " + look;
}

}  // namespace phalanx::cli
