#include "cli/plan_view.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/record.h"

namespace cli {
namespace {

using base::Bilingual;

std::string host_block(const job::State& state, size_t h, base::Language language) {
  const job::PlannedHost& planned = state.plan->hosts[h];
  const job::HostState& host = state.hosts[h];
  int last = planned.first_rank + planned.ranks - 1;
  std::string out = fmt::format("\n{} ({}): {} {}{} ({})\n", planned.name, host.hello.hostname,
                                planned.ranks == 1 ? Bilingual{"rank", "rank"}.in(language) : Bilingual{"ranks", "rank"}.in(language),
                                planned.first_rank, planned.ranks == 1 ? "" : fmt::format("–{}", last), planned.why);
  out += fmt::format("  {:<10}{}\n", Bilingual{"program", "程序"}.in(language), host.program);
  for (int r = planned.first_rank; r <= last; ++r) {
    std::string line;
    for (const auto& [name, value] : job::rank_variables(state.job, *state.plan, r, *state.meeting, 0))
      line += fmt::format(" {}={}", name, base::shell_quote(value));
    out += fmt::format("  rank {:<5}{}\n", r, line.substr(1));
  }
  std::string defaults;
  for (const auto& [name, value] :
       job::interface_chosen(state.checks.choices, h) ? wire::Variables{} : job::host_defaults(*state.plan, host.interface))
    defaults += fmt::format(" {}={}", name, base::shell_quote(value));
  if (!defaults.empty()) out += fmt::format("  {}{}\n", Bilingual{"unless set:", "若未设置："}.in(language), defaults);
  return out;
}

// Names only: values of passed-on variables may be secrets.
std::string passed_on(const job::State& state) {
  std::string names;
  for (const auto& [name, value] : state.job.set) names += (names.empty() ? "" : " ") + name;
  return names.empty() ? "-" : names;
}

}  // namespace

std::string plan_text(const job::State& state, base::Language language) {
  std::string out;
  auto row = [&](Bilingual name, const std::string& value) { out += fmt::format("{:<12}{}\n", name.in(language), value); };
  row({"command", "命令"}, base::shell_quote(state.job.argv));
  row({"workdir", "工作目录"}, state.job.directory);
  row({"ranks", "rank 数"}, fmt::format("{} on {} host{}", state.plan->world, state.hosts.size(), state.hosts.size() == 1 ? "" : "s"));
  row({"meeting at", "会合地址"},
      fmt::format("{}:{} ({})", state.meeting->address, state.job.master_port != 0 ? std::to_string(state.job.master_port) : "a free port",
                  state.meeting->served ? "the store of the agent on " + state.plan->hosts[0].name : "rank 0 serves the store"));
  row({"passed on", "传递的变量"}, passed_on(state));
  for (size_t h = 0; h < state.hosts.size(); ++h) out += host_block(state, h, language);
  return out;
}

base::Json plan_json(const job::State& state) {
  base::Json json = describe_plan(state);
  json["passed_on"] = base::Json::array();
  for (const auto& [name, value] : state.job.set) json["passed_on"].push_back(name);
  base::Json ranks = base::Json::array();
  for (int r = 0; r < state.plan->world; ++r) {
    base::Json environment = base::Json::object();
    for (const auto& [name, value] : job::rank_variables(state.job, *state.plan, r, *state.meeting, 0)) environment[name] = value;
    ranks.push_back({{"rank", r},
                     {"host", state.plan->hosts[static_cast<size_t>(state.plan->host_of(r))].name},
                     {"local_rank", state.plan->local_rank(r)},
                     {"environment", std::move(environment)}});
  }
  json["ranks"] = std::move(ranks);
  return json;
}

}  // namespace cli
