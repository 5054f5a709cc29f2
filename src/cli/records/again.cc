#include "cli/records/again.h"

#include <algorithm>

#include "agent/ranks/environment.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "cli/passed_on.h"
#include "cli/records/record_life.h"
#include "job/plan.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

// Hosts as -H takes them. Empty: one was reached through a port of its own, as a node of a Slurm job, joined by hand, or a container:
// -H cannot say that.
std::string host_words(const Reached& reached, const job::State& planned, bool slots) {
  Words words;
  for (const job::PlannedHost& host : planned.plan->hosts) {
    auto target = std::find_if(reached.hosts.begin(), reached.hosts.end(), [&](const hosts::Target& t) { return t.name == host.name; });
    if (target == reached.hosts.end() || target->port != 0 || !target->slurm_job.empty() || target->node_rank > 0 || target->container)
      return "";  // an allocation may be over, and where a node joins from is not known to -H
    const std::string word = target->destination.empty() ? "localhost" : target->destination;
    words.push_back(slots ? word + ":" + std::to_string(host.ranks) : word);
  }
  return base::join(words, ",");
}

// What came from options and files, by name: the values are not recorded. What this machine passes on by itself it does again.
void add_variables(const job::State& planned, Words& command) {
  for (size_t i = 0; i < planned.job.set.size() && i < planned.job.origins.size(); ++i) {
    const std::string& from = planned.job.origins[i];
    if (from == kFromHere || from == kFromPython || from.starts_with("project file")) continue;
    if (from == "--python-hook") {
      command.push_back("--python-hook");
      continue;
    }
    command.insert(command.end(), {"--export", planned.job.set[i].first});
  }
}

bool add_options(const Reached& reached, Words& command) {
  Words checked;  // what would be refused in a record must not be printed to be typed
  if (!add_recorded(checked, reached.ssh_options, "").ok()) return false;
  for (const std::string& option : checked) command.insert(command.end(), {"--ssh-option", option});
  return true;
}

}  // namespace

std::string run_again(const logs::Run& run, const job::State& planned, const std::vector<RunEvent>& events) {
  base::Result<Reached> reached = reach_of(run.record);
  if (!run.ours || !planned.plan || planned.job.argv.empty() || !reached.ok()) return "";
  const std::string hosts = host_words(*reached, planned, true);
  Words command{"phalanx", "run", "-H", hosts};
  if (hosts.empty() || !add_options(*reached, command)) return "";
  std::string directory = planned.job.directory;
  for (const RunEvent& event : events) {
    if (event.name != "synced") continue;
    const std::string copy = base::get_string(event.fields, "copy").value_or(""),
                      from = base::get_string(event.fields, "directory").value_or("");
    if (copy.empty() || from.empty() || !directory.starts_with(copy)) continue;
    directory = from + directory.substr(copy.size());
    command.push_back("--sync=" + from);
    break;
  }
  if (planned.job.local_rank_macro) command.push_back("--local-rank-macro");
  if (planned.job.max_restarts > 0) command.insert(command.end(), {"--max-restarts", std::to_string(planned.job.max_restarts)});
  add_variables(planned, command);
  command.push_back("--");
  command.insert(command.end(), planned.job.argv.begin(), planned.job.argv.end());
  return "cd " + base::shell_quote(directory) + " && " + base::shell_quote(command);
}

std::string rank_again(const logs::Run& run, const job::State& planned, int rank) {
  base::Result<Reached> reached = reach_of(run.record);
  if (!run.ours || !planned.plan || !planned.meeting || planned.job.argv.empty() || !reached.ok()) return "";
  if (rank < 0 || rank >= planned.plan->world) return "";
  const Words all = [&] {
    const std::string joined = host_words(*reached, planned, false);
    Words words;
    for (std::string_view word : base::split(joined, ',')) words.emplace_back(word);
    return words;
  }();
  const auto at = static_cast<size_t>(planned.plan->host_of(rank));
  if (at >= all.size() || all[at].empty()) return "";
  Words command{"phalanx", "exec", "-H", all[at], "-C", planned.job.directory};
  if (!add_options(*reached, command)) return "";
  add_variables(planned, command);
  command.insert(command.end(), {"--", "env"});
  for (const auto& [name, value] : job::rank_variables(planned.job, *planned.plan, rank, *planned.meeting))
    if (name != "PHALANX_RUN_ID" && name != "TORCHELASTIC_USE_AGENT_STORE") command.push_back(name + "=" + value);
  const Words words = agent::rank_arguments(planned.job, static_cast<uint32_t>(planned.plan->local_rank(rank)));
  command.insert(command.end(), words.begin(), words.end());
  return base::shell_quote(command);
}

}  // namespace phalanx::cli
