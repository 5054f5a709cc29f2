#include "cli/records/run_story.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/records/record_life.h"
#include "cli/records/runs.h"
#include "diagnosis/logs/advice.h"
#include "os/files.h"
#include "view/speed.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::Json;
using base::Language;
using words::tr;

constexpr size_t kMostCurves = 64;
constexpr size_t kMostTable = 65'536;

std::string text_of(const Json& object, const char* key) { return object.is_object() ? base::get_string(object, key).value_or("") : ""; }

std::string end_text(const Json& event, Language language) {
  std::string signal = text_of(event, "signal"), stopped = text_of(event, "stopped_by_us");
  std::string text = signal.empty() ? tr(language, "exited with code {}", base::get_int(event, "code").value_or(-1))
                                    : tr(language, "killed by {}", signal);
  if (!stopped.empty()) text += tr(language, ", stopped by phalanx");
  return text;
}

bool is_bad(const RunEvent& event) {
  if (event.name == "rank_exited")
    return text_of(event.fields, "stopped_by_us").empty() &&
           (!text_of(event.fields, "signal").empty() || base::get_int(event.fields, "code").value_or(0) != 0);
  return event.name == "trouble" || base::get_bool(event.fields, "ok") == false || event.name == "stall" || event.name == "time_limit" ||
         event.name == "attempt_ended";
}

// Without what says nothing to people, and without the end of a connection whose host has said that nothing is left.
std::vector<const RunEvent*> worth_telling(const std::vector<RunEvent>& events, Language language) {
  std::set<std::string> finished;
  std::vector<const RunEvent*> told;
  for (const RunEvent& event : events) {
    std::string host = text_of(event.fields, "host");
    if (event.name == "host_finished") finished.insert(host);
    if (event.name == "host_open") finished.erase(host);  // another attempt
    bool expected = event.name == "host_ended" && finished.count(host) > 0;
    if (!expected && !event_text(event, 1, language).empty()) told.push_back(&event);
  }
  return told;
}

void add_timeline(view::Story& story, const std::vector<RunEvent>& all, Language language) {
  std::vector<const RunEvent*> events = worth_telling(all, language);
  for (size_t i = 0; i < events.size();) {
    const RunEvent& event = *events[i];
    size_t end = i + 1;
    bool folds = event.name == "rank_started" || event.name == "rank_connected" || event.name == "host_prepared" ||
                 event.name == "host_open" || event.name == "host_probed";
    while (folds && end < events.size() && events[end]->name == event.name && !is_bad(*events[end]) && !is_bad(event)) ++end;
    story.timeline.push_back({event.time, event_text(event, end - i, language), is_bad(event)});
    i = end;
  }
}

// Per rank the curve of its loss and of its seconds per step, over steps.
void add_curves(view::Story& story, const std::vector<logs::ProgressPoint>& points) {
  std::map<int, view::Curve> losses, times;
  std::map<int, std::pair<double, int64_t>> before;  // when, step
  for (const logs::ProgressPoint& point : points) {
    if (!point.progress.step || (losses.size() >= kMostCurves && !losses.count(point.rank))) continue;
    double step = static_cast<double>(*point.progress.step);
    std::string name = fmt::format("rank {}", point.rank);
    losses[point.rank].name = times[point.rank].name = name;
    if (point.progress.loss) losses[point.rank].points.emplace_back(step, *point.progress.loss);
    auto last = before.find(point.rank);
    if (last != before.end() && *point.progress.step > last->second.second && point.t >= last->second.first)
      times[point.rank].points.emplace_back(
          step, (point.t - last->second.first) / static_cast<double>(*point.progress.step - last->second.second));
    before[point.rank] = {point.t, *point.progress.step};
  }
  for (auto* from : {&losses, &times})
    for (auto& [rank, curve] : *from)
      if (!curve.points.empty()) (from == &losses ? story.losses : story.step_times).push_back(std::move(curve));
}

std::optional<double> median_of(const std::vector<view::Curve>& curves, int rank) {
  for (const view::Curve& curve : curves) {
    if (curve.name != fmt::format("rank {}", rank)) continue;
    std::vector<double> values;
    for (auto [step, seconds] : curve.points) values.push_back(seconds);
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  }
  return std::nullopt;
}

void add_table(view::Story& story, const logs::Run& run, const std::vector<RunEvent>& events,
               const std::vector<logs::ProgressPoint>& points, Language language) {
  std::vector<std::string> hosts = host_of_rank(run.record);
  story.ranks = static_cast<int64_t>(hosts.size());
  if (hosts.size() > kMostTable) hosts.resize(kMostTable);
  for (size_t r = 0; r < hosts.size(); ++r) {
    view::StoryRank rank;
    rank.rank = static_cast<int>(r);
    rank.host = hosts[r];
    if (run.life == logs::Life::kAlive) rank.end = tr(language, "running");
    rank.seconds_per_step = median_of(story.step_times, rank.rank);
    story.table.push_back(std::move(rank));
  }
  auto at = [&](const Json& fields) -> view::StoryRank* {
    std::optional<int64_t> r = base::get_int(fields, "rank");
    return r && *r >= 0 && static_cast<size_t>(*r) < story.table.size() ? &story.table[static_cast<size_t>(*r)] : nullptr;
  };
  for (const RunEvent& event : events)
    if (view::StoryRank* rank = event.name == "rank_exited" ? at(event.fields) : nullptr) {
      rank->end = end_text(event.fields, language);
      rank->bad = is_bad(event);
    }
  for (const logs::ProgressPoint& point : points) {
    if (static_cast<size_t>(point.rank) >= story.table.size()) continue;
    view::StoryRank& rank = story.table[static_cast<size_t>(point.rank)];
    const wire::RankProgress& p = point.progress;
    if (p.step) rank.step = p.total ? fmt::format("{}/{}", *p.step, *p.total) : std::to_string(*p.step);
    if (p.loss) rank.loss = fmt::format("{:.4g}", *p.loss);
    if (std::string speed = view::speed_text(p.tokens_per_s, p.samples_per_s, language); !speed.empty()) rank.speed = std::move(speed);
  }
}

// A verdict of the record (cli/records/record.cc) or a phase (cli/live.cc), for people.
std::string shown(std::string_view word, Language language) {
  constexpr words::Text kWords[] = {
      words::Text{"done"},
      words::Text{"refused"},
      words::Text{"rank-failed"},
      words::Text{"host-lost"},
      words::Text{"launcher-suspended"},
      words::Text{"hung"},
      words::Text{"interrupted"},
      words::Text{"timed-out"},
      words::Text{"lost"},
      words::Text{"opening"},
      words::Text{"checking"},
      words::Text{"preparing"},
      words::Text{"reaching"},
      words::Text{"running"},
      words::Text{"stopping"},
      words::Text{"finishing"},
      words::Text{"ended"},
  };
  for (const words::Text& known : kWords)
    if (known.english == word) return std::string(known.in(language));
  return std::string(word);
}

// What a run that has not ended is doing.
void add_now(view::Story& story, const logs::Run& run, const Json& status, Language language) {
  if (run.life == logs::Life::kEnded || !run.ours) return;
  auto add = [&](std::string text) { story.now.push_back(std::move(text)); };
  if (run.life == logs::Life::kLost)
    return add(tr(language,
                  "the launcher was killed; its hosts stop all ranks by themselves when the lease expires. To verify: phalanx stop {}",
                  run.id));
  if (run.life == logs::Life::kElsewhere)
    return add(tr(language, "the run was started on {}; its state can only be seen there", run.launcher_host));
  if (!status.is_object()) return add(tr(language, "the launcher is alive but does not answer: it is stopped (kill -CONT) or very busy"));
  add(tr(language, "phase: {}", shown(text_of(status, "phase"), language)));
  if (auto progress = status.find("progress"); progress != status.end() && progress->is_object()) {
    std::optional<int64_t> step = base::get_int(*progress, "step"), total = base::get_int(*progress, "total");
    std::optional<double> loss = base::get_number(*progress, "loss");
    std::string text = step ? fmt::format("{}", *step) : "-";
    if (total) text += fmt::format("/{}", *total);
    if (loss) text += fmt::format(", loss {:.4g}", *loss);
    if (const std::string speed = view::speed_text(*progress, language); !speed.empty()) text += ", " + speed;
    add(tr(language, "step {}", text));
  }
  add(tr(language, "last output of a rank: {} s ago", fmt::format("{:.1f}", base::get_number(status, "silent_s").value_or(0))));
  if (std::string talk = text_of(status, "talk"); !talk.empty()) add(tr(language, "last: {}", talk));
}

// What --sync did: the host that lacked most stands for all.
std::string copied_text(const Json& f, Language language) {
  int64_t files = 0, bytes = 0;
  for (const Json& host : base::get_list(f, "hosts")) {
    files = std::max(files, base::get_int(host, "files").value_or(0));
    bytes = std::max(bytes, base::get_int(host, "bytes").value_or(0));
  }
  auto size = [](int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, n))); };
  return tr(language, "copied {} ({} files, {}): at most {} files, {} sent to a host", text_of(f, "directory"),
            base::get_int(f, "files").value_or(0), size(base::get_int(f, "bytes").value_or(0)), files, size(bytes));
}

std::string plain_text(const RunEvent& event, Language language) {
  const Json& f = event.fields;
  std::string host = text_of(f, "host");
  if (event.name == "note" || event.name == "trouble") return (host.empty() ? "" : host + ": ") + text_of(f, "text");
  if (event.name == "rank_exited")
    return fmt::format("rank {} ({}) {}", base::get_int(f, "rank").value_or(-1), host, end_text(f, language));
  if (event.name == "host_ended") {
    std::string why = text_of(f, "because");
    return words::said_in(language, text_of(f, "error") + (why.empty() ? "" : ": " + why));
  }
  if (event.name == "host_finished") {
    int64_t left = base::get_int(f, "left").value_or(0), killed = base::get_int(f, "killed").value_or(0);
    if (left == 0 && killed == 0) return tr(language, "{}: nothing left", host);
    return tr(language, "{}: killed {} leftover processes; {} could not be killed", host, killed, left);
  }
  if (event.name == "time_limit") {
    const double limit_s = base::get_number(f, "limit_s").value_or(0);
    const auto limit = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(limit_s, 0.0, 1e9) * 1e3));
    return tr(language, "the time limit of {} (--timeout) was reached: phalanx stopped the run", base::format_duration(limit));
  }
  if (event.name == "synced") return copied_text(f, language);
  if (event.name == "run_removed") return tr(language, "removed the record of the run {}: {}", text_of(f, "run"), text_of(f, "why"));
  if (event.name == "operator_signal") return tr(language, "the operator stopped the run ({})", text_of(f, "signal"));
  if (event.name == "store_open") return tr(language, "the store listens on {}:{}", host, base::get_int(f, "port").value_or(0));
  if (event.name == "host_listening" || event.name == "host_dialed" || event.name == "host_reached") return "";  // of the mesh test
  if (event.name == "ranks_sampled" || event.name == "ranks_dug") return "";  // what was seen is in the verdict
  if (event.name == "attempt_ended") {
    std::string evidence = text_of(f, "evidence"), cause = text_of(f, "cause");
    return tr(language, "this attempt ended: {}", shown(text_of(f, "verdict"), language)) + (cause.empty() ? "" : " (" + cause + ")") +
           (evidence.empty() ? "" : ": " + evidence);
  }
  if (event.name == "end") return tr(language, "end: {}", shown(text_of(f, "verdict"), language));
  Json rest = f;
  for (const char* key : {"v", "t", "event"}) rest.erase(key);
  return event.name + " " + base::to_text(rest);
}

// What is known of the message that ended the run.
void add_advice(view::Story& story, const Json& record, Language language) {
  diagnosis::LogCause cause;
  diagnosis::add_advice(cause, {{0, 1, text_of(record, "evidence"), text_of(record, "where")}});
  for (const doctor::Words& one : cause.advice) story.advice.push_back(one.in(language));
}

}  // namespace

std::string event_text(const RunEvent& event, size_t times, Language language) {
  const Json& f = event.fields;
  if (is_bad(event) && base::get_bool(f, "ok") == false) {
    std::string error = text_of(f, "error");
    return fmt::format("{}: {}", text_of(f, "host"), error.empty() ? event.name : words::said_in(language, error));
  }
  if (event.name == "rank_started") return tr(language, "ranks started: {}", times);
  if (event.name == "rank_connected") return tr(language, "ranks connected to the store: {}", times);
  if (event.name == "host_open") return tr(language, "hosts that answered: {}", times);
  if (event.name == "host_probed") return tr(language, "hosts probed: {}", times);
  if (event.name == "host_prepared") return tr(language, "hosts ready: {}", times);
  return plain_text(event, language);
}

view::Story story_of(const logs::Run& run, const Json& status, const std::vector<RunEvent>& events,
                     const std::vector<logs::ProgressPoint>& points, Language language) {
  view::Story story;
  std::string state = state_of(run, status);
  story.id = run.id;
  story.state = state_word(state).in(language);
  story.bad = state == "failed" || state == "refused" || state == "lost";
  story.command = base::shell_quote(base::get_strings(run.record, "command"));
  story.workdir = text_of(run.record, "workdir");
  story.began = text_of(run.record, "began");
  story.ended = text_of(run.record, "ended");
  for (const std::string& host : host_of_rank(run.record))
    if (std::find(story.hosts.begin(), story.hosts.end(), host) == story.hosts.end()) story.hosts.push_back(host);
  story.verdict = words_of(run.record, language);
  if (!run.ours)
    for (base::Error& error : story.verdict) error.hint.clear();  // something to type, by somebody else
  story.code = text_of(run.record, "cause");
  if (story.bad && run.ours) add_advice(story, run.record, language);
  add_now(story, run, status, language);
  add_timeline(story, events, language);
  add_curves(story, points);
  add_table(story, run, events, points, language);
  return story;
}

base::Result<std::vector<logs::ProgressPoint>> progress_of(const logs::Run& run) {
  const std::string path = run.path + "/progress.jsonl";
  TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_below(run.path, "progress.jsonl"));
  if (!file) return std::vector<logs::ProgressPoint>();
  TRY_ASSIGN(const std::string text, os::read_rest(*file, path, logs::kMaxProgressBytes));
  return logs::read_progress(text);
}

}  // namespace phalanx::cli
