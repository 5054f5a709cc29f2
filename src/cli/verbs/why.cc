// why: the verdict of a run as it was shown, with what led to it; a run that goes on is inspected now.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/try.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/records/look_story.h"
#include "cli/records/run_story.h"
#include "cli/records/runs.h"
#include "job/control/client.h"
#include "job/look.h"
#include "os/interruptible.h"
#include "os/loop.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr os::milliseconds kAnswer{1000};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";
constexpr size_t kTimeline = 20;
constexpr size_t kJsonTimeline = 200;

Json json_of(const logs::Run& run, const Json& status, const Json& look, const std::vector<RunEvent>& events) {
  Json timeline = Json::array();
  for (size_t i = events.size() > kJsonTimeline ? events.size() - kJsonTimeline : 0; i < events.size(); ++i)
    timeline.push_back(events[i].fields);
  Json json = {{"schema", 1}, {"id", run.id}, {"state", state_of(run, status)}, {"path", run.path}, {"record", run.record}};
  if (status.is_object()) json["status"] = status;
  if (look.is_object()) json["look"] = look;
  json["timeline"] = std::move(timeline);
  return json;
}

base::Result<std::string> text_of(const Invocation& invocation, const logs::Run& run) {
  Json status = nullptr, look = nullptr;
  if (run.life == logs::Life::kAlive) {
    base::Result<Json> answer = job::ask_status(run.path, run.id, kAnswer);
    if (answer.ok()) status = std::move(answer).value();
    if (status.is_object() && base::get_string(status, "phase") == "running")
      if (base::Result<Json> looked = job::ask_look(run.path, run.id, job::kLookPatience + kAnswer); looked.ok())
        look = std::move(looked).value();
  }
  std::vector<RunEvent> events;
  if (base::Result<std::vector<RunEvent>> read = read_events(run.path); read.ok()) events = std::move(read).value();
  else warn_of(logs::cannot_read(read.error(), fmt::format("the events of the run {}", run.id), run.path));
  if (invocation.has(Flag::kJson)) return base::to_text(json_of(run, status, look, events), 2) + "\n";
  view::Story story = story_of(run, status, events, {}, language_here());
  for (std::string& line : look_lines(look, language_here())) story.now.push_back(std::move(line));
  std::optional<double> step = look.is_object() ? base::get_number(look, "step_s") : base::get_number(run.record, "step_s");
  if (step) {
    TRY_ASSIGN(const std::string folder, runs_folder(invocation));
    base::Result<std::vector<logs::Run>> all = logs::list_runs(folder);
    if (std::string line = all.ok() ? scaling_line(run.record, step, *all, language_here()) : ""; !line.empty())
      story.now.push_back(std::move(line));
  }
  return view::story_text(story, language_here(), kTimeline);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

base::Result<int> why_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  const std::optional<std::string> pause = invocation.value(Flag::kWatch);
  const bool screen = ::isatty(STDOUT_FILENO) == 1;
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  const os::Interruptible by_signals;
  for (;;) {
    TRY_ASSIGN(const std::string text, text_of(invocation, run));
    const bool goes_on = pause && run.life == logs::Life::kAlive;
    print((goes_on && screen ? kClearScreen : "") + text);
    if (!goes_on) return 0;
    loop->poll(duration_value(*pause));
    run = logs::look_at_run(run.path, run.id);
  }
}

}  // namespace phalanx::cli
