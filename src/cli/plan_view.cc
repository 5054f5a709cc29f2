#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"
#include "cli/passed_on.h"
#include "cli/records/record.h"
#include "hosts/connect/container_start.h"
#include "machine/ranks/threads.h"
#include "view/choices.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using wire::Variables;
using words::Text;
using words::tr;

// What all of them have with the same value is taken out of each and returned.
Variables take_common(std::vector<Variables>& all) {
  Variables common;
  for (const auto& entry : Variables(all.empty() ? Variables{} : all[0])) {
    bool everywhere =
        std::all_of(all.begin(), all.end(), [&](const Variables& v) { return std::find(v.begin(), v.end(), entry) != v.end(); });
    if (!everywhere) continue;
    common.push_back(entry);
    for (Variables& v : all) v.erase(std::find(v.begin(), v.end(), entry));
  }
  return common;
}

std::string assignments(const Variables& variables) {
  std::string line;
  for (const auto& [name, value] : variables) line += (line.empty() ? "" : " ") + name + "=" + base::shell_quote(value);
  return line;
}

std::string indented(const std::string& text, size_t indent) {
  constexpr size_t kColumns = 100;
  std::string out;
  for (const std::string& line : base::wrap(text, kColumns - indent)) out += std::string(indent, ' ') + line + "\n";
  return out;
}

// What the agent adds where neither the user nor the checks have set it (agent/ranks/environment.cc).
Variables agent_defaults(const job::State& state, const job::PlannedHost& planned, const wire::Hello& hello) {
  Variables defaults;
  auto add = [&](const char* name, std::string value) {
    auto is = [&](const auto& entry) { return entry.first == name; };
    if (std::none_of(state.job.set.begin(), state.job.set.end(), is) && std::none_of(planned.chosen.begin(), planned.chosen.end(), is))
      defaults.emplace_back(name, std::move(value));
  };
  add("OMP_NUM_THREADS", std::to_string(machine::threads_per_rank(static_cast<int64_t>(hello.cpus), 0, planned.ranks)));
  add("PYTHONUNBUFFERED", "1");
  add("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  return defaults;
}

// `ranks`: what each has beyond that of all ranks.
std::string host_block(const job::State& state, size_t h, std::vector<Variables> ranks, base::Language language) {
  const job::PlannedHost& planned = state.plan->hosts[h];
  const job::HostState& host = state.hosts[h];
  int last = planned.first_rank + planned.ranks - 1;
  std::string out = fmt::format("\n{} ({}): {} {}{} ({})\n", planned.name, host.hello.hostname,
                                planned.ranks == 1 ? Text{"rank"}.in(language) : Text{"ranks"}.in(language), planned.first_rank,
                                planned.ranks == 1 ? "" : fmt::format("–{}", last), words::said_in(language, planned.why));
  if (const hosts::Container& container = state.job.hosts[h].target.container)
    out += fmt::format("  {:<10}{}\n", Text{"container"}.in(language), hosts::shown_start(container));
  out += fmt::format("  {:<10}{}\n", Text{"program"}.in(language), host.program);
  if (Variables common = ranks.size() > 1 ? take_common(ranks) : Variables{}; !common.empty())
    out += fmt::format("  {}\n", Text{"each of its ranks:"}.in(language)) + indented(assignments(common), 4);
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::string place = state.survey.choices ? view::rank_place(state.survey.situation, *state.survey.choices, h, r) : "";
    out += fmt::format("  rank {:<5}{}\n", planned.first_rank + static_cast<int>(r), place.empty() ? assignments(ranks[r]) : place);
    if (!place.empty()) out += indented(assignments(ranks[r]), 12);
  }
  Variables defaults = job::interface_chosen(state.survey.choices, h) ? Variables{} : job::host_defaults(*state.plan, host.interface);
  for (const auto& entry : agent_defaults(state, planned, host.hello)) defaults.push_back(entry);
  if (!defaults.empty()) out += fmt::format("  {} {}\n", Text{"unless set:"}.in(language), assignments(defaults));
  return out;
}

// "h3:2, h4": a spare without slots runs one rank per GPU, as a host without slots does.
std::string spare_list(const std::vector<job::HostRequest>& spares) {
  std::string list;
  for (const job::HostRequest& spare : spares)
    list += (list.empty() ? "" : ", ") + spare.target.name + (spare.slots ? fmt::format(":{}", *spare.slots) : "");
  return list;
}

// With the reasons in English: keys, codes and JSON stay English.
base::Json choices_json(const job::Choices& choices, const job::State& state) {
  base::Json hosts = base::Json::array();
  for (size_t h = 0; h < choices.hosts.size(); ++h) {
    const job::HostChoice& c = choices.hosts[h];
    base::Json settings = base::Json::array();
    for (const job::Setting& s : c.settings) settings.push_back({{"name", s.name}, {"value", s.value}, {"why", s.why.english}});
    hosts.push_back({{"host", state.plan->hosts[h].name},
                     {"gpus", c.gpus},
                     {"gpus_why", c.gpus_why.english},
                     {"address", c.address},
                     {"interface", c.interface},
                     {"address_why", c.address_why.english},
                     {"settings", std::move(settings)},
                     {"rank_cpus", c.rank_cpus},
                     {"cpus_why", c.cpus_why.english}});
  }
  base::Json remarks = base::Json::array();
  for (const doctor::Words& words : choices.remarks) remarks.push_back(words.english);
  return {{"hosts", std::move(hosts)}, {"remarks", std::move(remarks)}};
}

}  // namespace

std::string plan_text(const job::State& state, base::Language language, const std::vector<job::HostRequest>& spares) {
  std::string out;
  auto row = [&](Text name, const std::string& value) { out += fmt::format("{:<12}{}\n", name.in(language), value); };
  row(Text{"command"}, base::shell_quote(state.job.argv));
  row(Text{"workdir"}, state.job.directory);
  if (!state.job.project.file.empty()) row(Text{"project"}, project_line(state.job.project));
  row(Text{"ranks##count"}, tr(language, "{} on {} host{}", state.plan->world, state.hosts.size(), state.hosts.size() == 1 ? "" : "s"));
  if (!spares.empty()) row(Text{"spares"}, spare_list(spares));
  row(Text{"rendezvous"}, fmt::format("{}:{} ({})", state.meeting->address,
                                      state.job.master_port != 0 ? std::to_string(state.job.master_port) : tr(language, "a free port"),
                                      state.meeting->served ? tr(language, "the store of the agent on {}", state.plan->hosts[0].name)
                                                            : tr(language, "rank 0 serves the store")));
  // Names only: values of passed-on variables may be secrets.
  std::vector<std::string> passed = passed_on_lines(state.job, language);
  if (passed.empty()) row(Text{"passed on"}, "-");
  for (size_t i = 0; i < passed.size(); ++i) row(i == 0 ? Text{"passed on"} : Text{}, passed[i]);
  if (state.survey.choices) out += "\n" + view::choices_text(state.survey.situation, *state.survey.choices, language);
  std::vector<Variables> ranks;
  for (int r = 0; r < state.plan->world; ++r) ranks.push_back(job::rank_variables(state.job, *state.plan, r, *state.meeting));
  if (Variables common = ranks.size() > 1 ? take_common(ranks) : Variables{}; !common.empty())
    out += fmt::format("\n{}\n", Text{"every rank"}.in(language)) + indented(assignments(common), 2);
  for (size_t h = 0; h < state.hosts.size(); ++h) {
    auto first = ranks.begin() + state.plan->hosts[h].first_rank;
    out += host_block(state, h, {first, first + state.plan->hosts[h].ranks}, language);
  }
  return base::printable_lines(out);  // names of hosts and programs are what the hosts say
}

base::Json plan_json(const job::State& state, const std::vector<job::HostRequest>& spares) {
  base::Json json = describe_plan(state);
  for (const job::HostRequest& spare : spares) {
    base::Json one = {{"host", spare.target.name}};
    if (spare.slots) one["slots"] = *spare.slots;
    json["spares"].push_back(std::move(one));
  }
  if (!state.job.project.file.empty()) json["project"] = describe_project(state.job.project);
  json["passed_on"] = base::Json::array();
  for (PassedOn& one : passed_on(state.job)) json["passed_on"].push_back(std::move(one.name));
  json["passed_on_from"] = describe_passed_on(state.job);
  json["passed_on_by_default"] = state.job.exported;
  base::Json ranks = base::Json::array();
  for (int r = 0; r < state.plan->world; ++r) {
    base::Json environment = base::Json::object();
    for (const auto& [name, value] : job::rank_variables(state.job, *state.plan, r, *state.meeting)) environment[name] = value;
    ranks.push_back({{"rank", r},
                     {"host", state.plan->hosts[static_cast<size_t>(state.plan->host_of(r))].name},
                     {"local_rank", state.plan->local_rank(r)},
                     {"environment", std::move(environment)}});
  }
  json["ranks"] = std::move(ranks);
  if (state.survey.choices) json["choices"] = choices_json(*state.survey.choices, state);
  return json;
}

}  // namespace phalanx::cli
