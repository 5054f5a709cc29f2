#include "cli/show.h"

#include <unistd.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/language.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/detach.h"
#include "cli/end_line.h"
#include "cli/json_stream.h"
#include "cli/passed_on.h"
#include "cli/plan_view.h"
#include "cli/records/elastic_error.h"
#include "cli/records/full_disk.h"
#include "cli/records/record.h"
#include "cli/records/record_life.h"
#include "job/narrate.h"
#include "logs/line_progress.h"
#include "logs/runs/old_runs_process.h"
#include "logs/runs/writer.h"
#include "os/apart.h"
#include "os/files.h"
#include "view/terminal/terminal.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

constexpr os::milliseconds kFirstSilence{3000};  // after which a run that has printed nothing is said to run
constexpr os::milliseconds kIdle{250};           // logs reach the disk at least so often
constexpr os::milliseconds kLastWords{10'000};   // how long slow readers of our output are waited for at the end, together
constexpr os::milliseconds kLostCount{500};      // how long we wait to hear how much a disk has lost, for the record
constexpr os::milliseconds kLastWrites{5000};    // how long the disk of the logs is waited for at the end

view::ViewOptions view_options(const RunOptions& options) {
  view::ViewOptions view;
  view.quiet = options.quiet;
  view.live = !options.dry_run;
  view.first_silence = kFirstSilence;
  view.fold = options.fold == Fold::kOn ? view::Choice::kOn : options.fold == Fold::kOff ? view::Choice::kOff : view::Choice::kAuto;
  return view;
}

view::TerminalCapabilities surroundings(const RunOptions& options, const view::Environment& environment) {
  view::Choice colour = options.color == Color::kAlways  ? view::Choice::kOn
                        : options.color == Color::kNever ? view::Choice::kOff
                                                         : view::Choice::kAuto;
  return view::detect_terminal(STDOUT_FILENO, STDERR_FILENO, environment, colour);
}

std::string variable(const char* name) { return os::environment_value(name); }

}  // namespace

class Show::Impl : public job::Audience {
 public:
  Impl(os::Loop& loop, const RunOptions& options)
      : loop_(loop),
        options_(options),
        speech_(view::choose_language(variable)),
        language_(speech_.language()),
        view_(std::make_unique<view::View>(loop, surroundings(options, variable), speech_, view_options(options))) {}
  ~Impl() override {
    if (idle_) loop_.cancel(idle_);
    if (cleaning_) loop_.cancel(cleaning_);
  }

  base::Status open_record(const job::Job& job) {
    int64_t now = os::wall_now_ns();
    began_ = os::mono_now();
    TRY_ASSIGN(std::string folder, logs::RunDirectory::base_folder(options_.log_dir));
    base::Result<logs::RunDirectory> made = logs::RunDirectory::create(folder, now);
    if (!made.ok()) return with_disk(std::move(made).error(), folder);
    logs::RunDirectory directory = std::move(made).value();
    logs::Writer::Options writer{.lock = directory.take_lock(),
                                 .reserve = directory.reserve_path(),
                                 .folder = directory.take_folder(),
                                 .folder_path = directory.path()};
    TRY_ASSIGN(files_, logs::Writer::start(loop_, std::move(writer), writer_handlers(directory.path())));
    record_.emplace(std::move(directory), *files_, now, static_cast<uint64_t>(options_.log_max));
    if (options_.split_logs) record_->split_streams();
    record_->opened(job, describe_reach(job, options_));
    TRY_ASSIGN(const std::string masks, masks_of(job));
    if (!masks.empty()) files_->replace(record_->directory().path() + "/masks.json", masks);
    // Not before the hosts are dialed: the launcher has nothing to do then but to wait for them.
    cleaning_ = loop_.after(os::milliseconds(0), [this, folder] { clean_up(folder); });
    live_.emplace(loop_, record_->directory().id(), record_->directory().path(), *files_);
    if (base::Status opened = live_->open(); !opened.ok())
      warn(fmt::format("phalanx ps, attach and stop cannot reach this run: {}", opened.error().message));
    idle_ = loop_.every(kIdle, [this] {
      record_->idle();
      read_held_lines();
    });
    return base::ok();
  }

  void output(const job::State& state, const wire::Output& output, int64_t wall_ns) override {
    if (record_) record_->output(output);
    if (live_) live_->output(output);
    read_progress(output);
    if (options_.detach) return;  // from the first line on: standard output is for the run's id
    int rank = static_cast<int>(output.rank);
    if (!options_.shown.all() && !options_.shown.shows(state.plan->local_rank(rank), output.stream)) return;
    if (options_.json) return print_output(state, output, wall_ns);
    if (output.kind == wire::OutputKind::kProgress) view_->bar(rank, output.data);
    else view_->line(rank, output.stream, output.data);
  }

  void progress(const job::State&, int rank, const wire::RankProgress& progress) override {
    if (static_cast<size_t>(rank) < lines_.size()) lines_[static_cast<size_t>(rank)].reports_itself();
    if (record_) record_->progress(rank, progress);
    if (live_) live_->progress(rank, progress);
    if (!options_.detach) view_->progress(rank, progress);
  }

  void note(const job::State& state, const job::Note& note) override {
    std::string text = job::narrate(state, note, language_);
    if (std::holds_alternative<job::RunStarted>(note)) {
      std::vector<std::string> hosts;
      for (int r = 0; r < state.plan->world; ++r) hosts.push_back(state.plan->hosts[static_cast<size_t>(state.plan->host_of(r))].name);
      if (!options_.detach) view_->set_ranks(hosts);
      lines_.assign(static_cast<size_t>(state.plan->world), {});
      for (logs::LineProgress& lines : lines_) lines.of_ranks(state.plan->world);
      if (record_) record_->started(state);
      if (live_) live_->started(state);
      text += changed_world(state.plan->world);
    }
    if (auto* restarting = std::get_if<job::Restarting>(&note)) tell_failure(state, *restarting);
    if (record_) record_->note(text);
    if (live_) live_->talk(text);
    view_->say("phalanx: " + text);
  }

  void event(const job::State& state, const job::Event& event) override {
    if (record_) record_->event(state, event);
    if (live_) live_->event(state);
    maybe_leave(state);
    if (left_) return;
    if (!options_.json && !options_.verbose) return;
    EventRecord record = describe(state, event);
    if (record.name.empty()) return;
    if (options_.json && !options_.dry_run) print_json(os::wall_now_ns(), record.name, record.fields);
    if (options_.verbose) view_->say("phalanx: " + record.name + " " + base::to_text(record.fields));
  }

  // The end is on its way to the disk before anything is waited for: the readers of our output first, then the disk, each for so long at
  // most.
  int report(const job::State& state, const job::Verdict& verdict) {
    old_runs_.reset();  // so that the end is the last event
    for (size_t rank = 0; rank < lines_.size(); ++rank)
      if (auto last = lines_[rank].last()) show_progress(static_cast<int>(rank), *last);
    if (files_) files_->settle(kLostCount);
    if (record_) record_->ended(state, verdict, live_->last_progress(), files_->lost_bytes());
    const os::Mono end = os::mono_now() + kLastWords;
    auto left = [&] { return std::max(os::milliseconds(0), std::chrono::ceil<os::milliseconds>(end - os::mono_now())); };
    view_->finish(left());
    if (verdict.kind == job::Verdict::Kind::kPlanned)
      json_->print_last(options_.json ? base::to_text(plan_json(state, spares_), 2) + "\n" : plan_text(state, language_, spares_));
    else if (options_.json) json_->print_last(json_line(os::wall_now_ns(), "end", describe(state, verdict)));
    json_->drain(left());
    if (live_ && began_)
      if (const std::string line = end_line(state, verdict, live_->last_progress(),
                                            std::chrono::duration_cast<os::milliseconds>(os::mono_now() - *began_), language_);
          !line.empty())
        view_->say("phalanx: " + line);
    say_errors(state, verdict);
    view_->finish(left());
    const bool written = !files_ || settle_files();
    view_->finish(left());
    if (live_) live_->ended(verdict.exit_code);
    if (files_ && written) files_->settle(kLastWrites);  // the control socket is gone when we are
    if (launcher_log_) launcher_log_->wait_taken(left());
    answer_scheduler(state, verdict);
    return verdict.exit_code;
  }
  void synced(const base::Json& what) {
    if (record_) record_->synced(what);
    if (options_.json && !options_.dry_run) print_json(os::wall_now_ns(), "synced", what);
  }
  void timed_out() {
    const std::string text =
        words::tr(language_, "the time of --timeout {} is over: stopping the run", base::format_duration(*options_.timeout));
    if (live_) live_->talk(text);
    view_->say("phalanx: " + text);
  }
  void on_look(std::function<void()> look) {
    if (live_) live_->on_look(std::move(look));
  }
  void looked(const std::string& json) {
    if (live_) live_->looked(json);
  }
  void on_stop(StopRun stop) {
    if (live_) live_->on_stop(std::move(stop));
  }
  void leave_when_started(os::Fd word, std::function<void()> left) {
    word_ = std::move(word);
    on_left_ = std::move(left);
  }
  void plan_with(const std::vector<job::HostRequest>& spares) { spares_ = spares; }
  std::string run_id() const { return record_ ? record_->directory().id() : "plan"; }

 private:
  // cli/records/elastic_error.h. Not by us: the disk may hang.
  void answer_scheduler(const job::State& state, const job::Verdict& verdict) {
    const std::string path = variable("TORCHELASTIC_ERROR_FILE");
    if (path.empty() || verdict.exit_code == 0 || options_.dry_run) return;
    const std::vector<base::Error> errors = job::explain(state, verdict, "", "", base::Language::kEnglish);
    const std::string text = elastic_error(verdict.error_file, errors.empty() ? "the run failed" : errors.front().message,
                                           verdict.exit_code, os::wall_now_ns() / 1'000'000'000);
    (void)os::run_apart("phalanx-copy", [&] { (void)os::write_file_atomic(path, text, 0644); }, kLastWrites);
  }
  void say_errors(const job::State& state, const job::Verdict& verdict) {
    std::string log = record_ && verdict.rank >= 0 ? record_->directory().rank_log_path(verdict.rank) : "";
    std::string last = record_ ? record_->last_lines(verdict.rank) : "";
    for (const base::Error& error : job::explain(state, verdict, last, log, language_)) view_->say_error(words::render(error, language_));
  }
  void warn(const std::string& text) { view_->say_error(words::tr(language_, "warning: {}", words::said_in(language_, text))); }
  logs::Writer::Handlers writer_handlers(const std::string& folder) {
    return {[this, folder](const std::string& text) { warn(warning_with_disk(text, folder)); },
            [this, folder] {
              warn(words::tr(language_,
                             "the disk of {} cannot keep up: the logs of this run are incomplete from here on; the run itself continues",
                             folder));
            },
            [this, folder](uint64_t lost) {
              warn(words::tr(language_, "the disk of {} accepts writes again; {} of the logs were lost", folder, base::format_bytes(lost)));
            }};
  }
  // Whatever goes wrong with old runs is no concern of this one.
  void clean_up(const std::string& folder) {
    cleaning_ = 0;
    if (options_.keep_runs.runs == 0) return;
    auto heard = [this](const std::string& id, const std::string& why, const std::string& problem) {
      record_->removed_run(id, why, problem);
    };
    auto started = logs::OldRunsProcess::start(loop_, folder, record_->directory().id(), options_.keep_runs, heard);
    if (started.ok()) old_runs_ = std::move(started).value();
  }
  // False: the disk has not taken everything.
  bool settle_files() {
    const std::string& folder = record_->directory().path();
    if (!files_->settle(kLastWrites)) {
      warn(words::tr(language_, "the disk of {} did not accept the end of the logs within {}; a background process keeps trying", folder,
                     base::format_duration(kLastWrites)));
      return false;
    }
    if (files_->lost_bytes() > 0)
      warn(words::tr(language_, "{1} of the logs in {0} were lost", folder, base::format_bytes(files_->lost_bytes())));
    return true;
  }
  // Ranks that report nothing: what their lines say.
  void read_progress(const wire::Output& output) {
    if (output.rank >= lines_.size()) return;
    logs::LineProgress& lines = lines_[output.rank];
    if (output.kind == wire::OutputKind::kProgress) return lines.bar(output.data);
    if (auto progress = lines.take(output.data, os::mono_now())) show_progress(static_cast<int>(output.rank), *progress);
  }
  void read_held_lines() {
    for (size_t rank = 0; rank < lines_.size(); ++rank)
      if (auto progress = lines_[rank].due(os::mono_now())) show_progress(static_cast<int>(rank), *progress);
  }
  void show_progress(int rank, const wire::RankProgress& progress) {
    if (record_) record_->shown_progress(rank, progress);
    if (live_) live_->progress(rank, progress);
    if (!options_.detach) view_->shown_progress(rank, progress);
  }
  // A restart on other hosts may have fewer or more ranks, and with them another global batch size.
  std::string changed_world(int world) {
    const int before = std::exchange(world_, world);
    if (before == 0 || before == world) return "";
    return words::tr(language_, " (before the restart: {} ranks; with a batch size per rank, the global batch size has changed)", before);
  }
  // Why there is another attempt.
  void tell_failure(const job::State& state, const job::Restarting& restarting) {
    say_errors(state, restarting.ended);
    if (record_) record_->restarting(state, restarting);
    if (options_.json) print_json(os::wall_now_ns(), "attempt_ended", describe(state, restarting.ended));
  }
  void maybe_leave(const job::State& state) {
    if (!word_.valid() || state.phase != job::Phase::kRunning) return;
    for (const job::RankState& rank : state.ranks)
      if (!rank.started) return;
    leave();
  }
  // What was shown stays shown; talk goes to launcher.log from here on, and what ranks print only to their logs.
  void leave() {
    view_->finish(kLastWords);
    json_->drain(kLastWords);
    view_.reset();
    json_.reset();
    base::Result<os::Relay> log = leave_terminal(record_->directory().path() + "/launcher.log");
    view_ = std::make_unique<view::View>(loop_, surroundings(options_, variable), speech_, view::ViewOptions{.live = true, .bar = false});
    json_ = std::make_unique<JsonStream>(loop_, STDOUT_FILENO, true);
    if (log.ok()) launcher_log_.emplace(std::move(log).value());
    else record_->note(log.error().message);
    left_ = true;
    live_->detached();
    on_left_();
    say_ready(std::move(word_), record_->directory().id());
  }
  void print_json(int64_t wall_ns, const std::string& name, const base::Json& fields) { json_->print(wall_ns, name, fields); }
  void print_output(const job::State& state, const wire::Output& output, int64_t wall_ns) {
    const std::string& host = state.plan->hosts[static_cast<size_t>(state.plan->host_of(static_cast<int>(output.rank)))].name;
    std::string_view rest = output.data;
    while (!rest.empty()) {
      size_t end = rest.find('\n');
      std::string line(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      print_json(wall_ns, output.kind == wire::OutputKind::kProgress ? "bar" : "output",
                 {{"rank", output.rank},
                  {"host", host},
                  {"stream", output.stream == wire::Stream::kStderr ? "stderr" : "stdout"},
                  {"text", line}});
    }
  }

  os::Loop& loop_;
  const RunOptions& options_;
  view::Speech speech_;
  base::Language language_;
  std::unique_ptr<view::View> view_;
  std::unique_ptr<JsonStream> json_ = std::make_unique<JsonStream>(loop_, STDOUT_FILENO, !options_.dry_run);  // --json and plan: data
  std::unique_ptr<logs::Writer> files_;                                                                       // outlives what writes to it
  std::optional<os::Relay> launcher_log_;
  std::optional<Record> record_;
  std::optional<Live> live_;
  std::unique_ptr<logs::OldRunsProcess> old_runs_;
  os::TimerId idle_ = 0, cleaning_ = 0;
  os::Fd word_;  // to the parent that waits at the terminal (cli/detach.h)
  std::function<void()> on_left_;
  bool left_ = false;                      // the terminal
  std::vector<logs::LineProgress> lines_;  // per rank of the attempt
  std::optional<os::Mono> began_;          // of a run
  int world_ = 0;                          // ranks of the latest attempt
  std::vector<job::HostRequest> spares_;   // for the plan
};

Show::Show(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Show::Show(Show&&) noexcept = default;
Show::~Show() = default;

base::Result<Show> Show::open(os::Loop& loop, const RunOptions& options, const job::Job& job) {
  auto impl = std::make_unique<Impl>(loop, options);
  if (options.dry_run) impl->plan_with(job.spares);
  else TRY(impl->open_record(job));
  return Show(std::move(impl));
}

std::string Show::run_id() const { return impl_->run_id(); }
job::Audience& Show::audience() { return *impl_; }
void Show::on_stop(StopRun stop) { impl_->on_stop(std::move(stop)); }
void Show::on_look(std::function<void()> look) { impl_->on_look(std::move(look)); }
void Show::looked(const std::string& json) { impl_->looked(json); }
void Show::leave_when_started(os::Fd word, std::function<void()> left) { impl_->leave_when_started(std::move(word), std::move(left)); }
void Show::synced(const base::Json& what) { impl_->synced(what); }
void Show::timed_out() { impl_->timed_out(); }
int Show::report(const job::State& state, const job::Verdict& verdict) { return impl_->report(state, verdict); }

}  // namespace phalanx::cli
