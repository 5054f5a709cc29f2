#include "cli/records/port_run.h"

#include "base/json_fields.h"
#include "cli/records/runs.h"
#include "logs/runs/run_list.h"

namespace phalanx::cli {

std::string run_on_port(const std::string& folder, const std::string& host, int port) {
  base::Result<std::vector<logs::Run>> runs = logs::list_runs(folder);
  if (!runs.ok()) return "";
  for (const logs::Run& run : *runs) {
    const bool goes_on = run.life == logs::Life::kAlive || run.life == logs::Life::kLost;
    if (!run.ours || !goes_on || base::get_int(run.record, "master_port") != port) continue;
    const std::vector<std::string> hosts = host_of_rank(run.record);
    if (!hosts.empty() && hosts.front() == host) return run.id;
  }
  return "";
}

}  // namespace phalanx::cli
