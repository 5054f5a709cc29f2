#include "cli/records/record_plan.h"

#include <algorithm>

#include "base/json_fields.h"
#include "cli/passed_on.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr int64_t kMostRanks = 1 << 20;

std::string text_of(const Json& object, const char* key) { return object.is_object() ? base::get_string(object, key).value_or("") : ""; }

wire::Variables variables_of(const Json& object, const char* key) {
  wire::Variables variables;
  if (!object.is_object()) return variables;
  auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return variables;
  for (auto it = found->begin(); it != found->end(); ++it)
    if (it->is_string()) variables.emplace_back(it.key(), it->get<std::string>());
  return variables;
}

// One host of the plan; false: the record does not say how many ranks it has.
bool add_host(const Json& host, job::State& state, job::Plan& plan) {
  const std::string name = text_of(host, "host");
  const int64_t ranks = host.is_object() ? base::get_int(host, "ranks").value_or(0) : 0;
  if (name.empty() || ranks <= 0 || ranks + plan.world > kMostRanks) return false;
  job::HostRequest request;
  request.target.name = name;
  state.job.hosts.push_back(std::move(request));
  job::HostState& known = state.hosts.emplace_back();
  known.hello.hostname = text_of(host, "hostname");
  known.hello.cpus = static_cast<uint32_t>(std::clamp<int64_t>(base::get_int(host, "cpus").value_or(0), 0, 1 << 20));
  known.program = text_of(host, "program");
  plan.hosts.push_back({name, plan.world, static_cast<int>(ranks), text_of(host, "why"), variables_of(host, "set"), ""});
  plan.world += static_cast<int>(ranks);
  return true;
}

}  // namespace

void add_given(const job::State& state, Json& record) {
  record["max_restarts"] = state.job.max_restarts;
  if (state.job.local_rank_macro) record["local_rank_macro"] = true;
  if (state.meeting) record["served"] = state.meeting->served;
  for (size_t h = 0; state.plan && h < state.plan->hosts.size(); ++h) {
    const job::PlannedHost& host = state.plan->hosts[h];
    Json& set = record["hosts"][h]["set"] = Json::object();
    for (const auto& [name, value] : host.chosen) set[name] = value;
    if (host.visible_devices.empty()) continue;
    set["CUDA_VISIBLE_DEVICES"] = host.visible_devices;
    set["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
}

job::State planned_state(const Json& record) {
  job::State state;
  state.job.run_id = text_of(record, "id");
  state.job.directory = text_of(record, "workdir");
  state.job.attempt = static_cast<int>(base::get_int(record, "attempt").value_or(0));
  state.job.local_rank_macro = base::get_bool(record, "local_rank_macro").value_or(false);
  state.job.max_restarts = static_cast<int>(base::get_int(record, "max_restarts").value_or(0));
  state.job.argv = base::get_strings(record, "command");
  for (const Json& one : base::get_list(record, "passed_on")) {
    state.job.set.emplace_back(text_of(one, "name"), "");
    state.job.origins.push_back(text_of(one, "from"));
  }
  if (auto project = record.find("project"); project != record.end()) state.job.project = project_in(*project);
  const std::string address = text_of(record, "master_addr");
  const auto hosts = record.find("hosts");
  if (hosts == record.end() || !hosts->is_array() || address.empty()) return state;
  job::Plan plan;
  for (const Json& host : *hosts)
    if (!add_host(host, state, plan)) return state;
  state.job.master_port = static_cast<int>(base::get_int(record, "master_port").value_or(0));
  state.meeting = job::Meeting{address, state.job.master_port, base::get_bool(record, "served").value_or(true)};
  if (plan.world > 0) state.plan = std::move(plan);
  return state;
}

}  // namespace phalanx::cli
