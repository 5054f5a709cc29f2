// why: the verdict of a run as it was shown, with what led to it; of a run that goes on, what it is doing.
#include <cstdio>

#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/records/run_story.h"
#include "cli/records/runs.h"
#include "job/control/client.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr os::milliseconds kAnswer{1000};
constexpr size_t kTimeline = 20;
constexpr size_t kJsonTimeline = 200;

Json json_of(const logs::Run& run, const Json& status, const std::vector<RunEvent>& events) {
  Json timeline = Json::array();
  for (size_t i = events.size() > kJsonTimeline ? events.size() - kJsonTimeline : 0; i < events.size(); ++i)
    timeline.push_back(events[i].fields);
  Json json = {{"schema", 1}, {"id", run.id}, {"state", state_of(run, status)}, {"path", run.path}, {"record", run.record}};
  if (status.is_object()) json["status"] = status;
  json["timeline"] = std::move(timeline);
  return json;
}

}  // namespace

base::Result<int> why_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  Json status = nullptr;
  if (run.life == logs::Life::kAlive) {
    base::Result<Json> answer = job::ask_status(run.path, run.id, kAnswer);
    if (answer.ok()) status = std::move(answer).value();
  }
  std::vector<RunEvent> events;
  if (base::Result<std::vector<RunEvent>> read = read_events(run.path); read.ok()) events = std::move(read).value();
  else warn_of(logs::cannot_read(read.error(), "the events of the run " + run.id, run.path));
  std::string out;
  if (invocation.has(Flag::kJson)) out = base::to_text(json_of(run, status, events), 2) + "\n";
  else out = view::story_text(story_of(run, status, events, {}, language_here()), language_here(), kTimeline);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
