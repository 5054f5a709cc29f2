// inspect: what a run was asked to do and what it was given: command, plan of every rank, environment by origin. From its record alone, so
// it works while the run goes on and long after.
#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/plan_view.h"
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
  if (invocation.has(Flag::kJson)) {
    Json json = {{"schema", 1}, {"id", run.id}, {"state", state}, {"path", run.path}, {"record", run.record}};
    if (planned.plan) json["plan"] = plan_json(planned);
    out = base::to_text(json, 2) + "\n";
  } else {
    out = head(run, state, language_here());
    if (planned.plan) out += plan_text(planned, language_here());
    else out += base::pad_right(Text{"command"}.in(language_here()), 12) + base::shell_quote(planned.job.argv) + "\n";
    out = base::printable_lines(out);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
