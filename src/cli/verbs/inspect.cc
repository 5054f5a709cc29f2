// inspect: what a run was asked to do and what it was given: command, plan of every rank, environment by origin. From its record alone, so
// it works while the run goes on and long after.
#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/plan_view.h"
#include "cli/records/again.h"
#include "cli/records/record_plan.h"
#include "cli/records/runs.h"
#include "job/control/client.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::Json;
using words::Text;

constexpr os::milliseconds kAnswer{500};

std::string head(const logs::Run& run, const std::string& state, base::Language language) {
  std::string out;
  auto row = [&](Text name, const std::string& value) {
    if (!value.empty()) out += base::pad_right(name.in(language), 12) + value + "\n";
  };
  auto text = [&](const char* key) { return base::get_string(run.record, key).value_or(""); };
  row(Text{"run"}, run.id);
  row(Text{"name"}, text("name"));
  row(Text{"state"}, std::string(state_word(state).in(language)));
  row(Text{"began"}, text("began"));
  row(Text{"ended"}, text("ended"));
  if (auto attempt = base::get_int(run.record, "attempt"); attempt.value_or(0) > 0) row(Text{"restarts"}, std::to_string(*attempt));
  row(Text{"directory"}, run.path);
  return out;
}

// Nothing but the commands: for a script, or to copy.
base::Result<std::string> commands_of_ranks(const Invocation& invocation, const logs::Run& run, const job::State& planned) {
  TRY_ASSIGN(const std::vector<bool> wanted, wanted_ranks(invocation, host_of_rank(run.record)));
  std::string out;
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    if (!wanted[rank]) continue;
    const std::string command = rank_again(run, planned, static_cast<int>(rank));
    if (command.empty())
      return base::fail(base::ErrorKind::kConfig, fmt::format("the record of {} does not say how to start rank {} again", run.id, rank))
          .with_hint("phalanx inspect " + run.id);
    out += command + "\n";
  }
  return out;
}

// What led to the plan, once more. From the events, because a copy of --sync is not where the code is.
std::string again_row(const Invocation& invocation, const logs::Run& run, const job::State& planned, base::Language language) {
  const base::Result<std::vector<RunEvent>> events = read_events(run.path);
  const std::string command = run_again(run, planned, events.ok() ? *events : std::vector<RunEvent>());
  if (command.empty()) return "";
  const std::optional<std::string> folder = invocation.value(Flag::kLogDir);
  return "\n" + base::pad_right(Text{"again"}.in(language), 12) + command + "\n" + base::pad_right(Text{"one rank"}.in(language), 12) +
         "phalanx inspect " + run.id + " --rank 0" + (folder ? " --log-dir " + base::shell_quote({*folder}) : "") + "\n";
}

}  // namespace

base::Result<int> inspect_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  if (run.unreadable) return *run.unreadable;
  Json status = nullptr;
  if (run.life == logs::Life::kAlive)
    if (base::Result<Json> answer = job::ask_status(run.path, run.id, kAnswer); answer.ok()) status = std::move(answer).value();
  const std::string state = state_of(run, status);
  const job::State planned = planned_state(run.record);
  std::string out;
  if (invocation.has(Flag::kRank)) {
    TRY_ASSIGN(out, commands_of_ranks(invocation, run, planned));
  } else if (invocation.has(Flag::kJson)) {
    Json json = {{"schema", 1}, {"id", run.id}, {"state", state}, {"path", run.path}, {"record", run.record}};
    if (planned.plan) json["plan"] = plan_json(planned);
    out = base::to_text(json, 2) + "\n";
  } else {
    out = head(run, state, language_here());
    if (planned.plan) out += plan_text(planned, language_here());
    else out += base::pad_right(Text{"command"}.in(language_here()), 12) + base::shell_quote(planned.job.argv) + "\n";
    out += again_row(invocation, run, planned, language_here());
    out = base::printable_lines(out);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
