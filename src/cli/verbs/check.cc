// check: parse → open hosts → probe → mesh test → examine → report. Nothing is started.
//
// With --watch the same again after each wait. ssh keeps its connections meanwhile (hosts/connect/openssh.h), so that a look costs no
// login.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/try.h"
#include "cli/exit_code.h"
#include "cli/flags/verbs.h"
#include "cli/launch.h"
#include "cli/make_job.h"
#include "cli/sync_code.h"
#include "job/narrate.h"
#include "os/files.h"
#include "view/check/changes.h"
#include "view/speech.h"
#include "view/terminal/capabilities.h"
#include "view/terminal/output.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

constexpr os::milliseconds kLastWords{10'000};  // how long a slow reader of our output is waited for
constexpr size_t kColumnsOffTerminal = 120;
constexpr size_t kNarrowest = 40;
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

std::string variable(const char* name) { return os::environment_value(name); }

// Nothing is shown while the checks go on but what takes long.
class Watcher : public job::Audience {
 public:
  Watcher(base::Language language, bool quiet) : language_(language), quiet_(quiet) {}
  void output(const job::State&, const wire::Output&, int64_t) override {}
  void progress(const job::State&, int, const wire::RankProgress&) override {}
  void note(const job::State& state, const job::Note& note) override {
    if (!quiet_) std::fputs(("phalanx: " + job::narrate(state, note, language_) + "\n").c_str(), stderr);
  }
  void event(const job::State&, const job::Event&) override {}

 private:
  base::Language language_;
  bool quiet_;
};

class Check {
 public:
  Check(const RunOptions& options, job::Job job)
      : options_(options), job_(std::move(job)), watcher_(view::choose_language(variable), options.quiet) {
    view::Choice colour = options.color == Color::kAlways  ? view::Choice::kOn
                          : options.color == Color::kNever ? view::Choice::kOff
                                                           : view::Choice::kAuto;
    around_ = view::detect_terminal(STDOUT_FILENO, STDERR_FILENO, variable, colour);
    style_.language = view::choose_language(variable);
    style_.utf8 = around_.utf8;
    style_.colour = around_.out_colour;
  }

  // One look at all hosts; its exit code.
  base::Result<int> look() {
    TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
    job::Runner runner(*loop, watcher_);
    TRY_ASSIGN(job::Verdict verdict, run_on_hosts(runner, job_, options_));
    // Every host has been looked at, or it is known why not.

    const job::State& state = runner.state();
    std::vector<base::Error> errors = job::explain(state, verdict, "", "", style_.language);
    if (verdict.kind == job::Verdict::Kind::kInterrupted) {
      if (!before_) print(errors);
      return verdict.exit_code;
    }
    view::CheckRound round{state.survey.situation, state.survey.examination};
    for (size_t h = round.situation.hosts.size(); h < state.hosts.size(); ++h) {  // it ended before the first probe
      round.situation.hosts.emplace_back().name = state.job.hosts[h].target.name;
      if (state.hosts[h].refusal) round.situation.hosts[h].error = state.hosts[h].refusal->message;
    }
    // Where no plan can be made the supervisor ends before it examines; what is wrong is asked here all the same.
    if (verdict.kind != job::Verdict::Kind::kChecked) {
      round.examination = doctor::examine(round.situation, job_.only);
      doctor::accept(round.situation, job_.accepted, round.examination);
    }
    style_.columns = around_.out_terminal ? std::max(view::terminal_columns(STDOUT_FILENO), kNarrowest) : kColumnsOffTerminal;
    view::Output out(*loop, STDOUT_FILENO);
    const int code = check_exit_code(state, verdict, round.examination, options_.fail_on);
    out.buffer() = text(state, round, code);
    out.drain(kLastWords);
    if (!before_ || around_.out_terminal) print(errors);
    before_ = std::move(round);
    return code;
  }

  // Until the next look is due; false when the operator wants no other.
  base::Result<bool> wait() const {
    TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
    bool again = false;
    loop->after(*options_.watch, [&] {
      again = true;
      loop->stop();
    });
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) TRY(loop->on_signal(s, [&](const signalfd_siginfo&) { loop->stop(); }));
    loop->run();
    return again;
  }

 private:
  void print(const std::vector<base::Error>& errors) const {
    for (const base::Error& error : errors) std::fputs(words::render(error, style_.language).c_str(), stderr);
  }
  std::string text(const job::State& state, const view::CheckRound& round, int code) const {
    const job::Choices* choices = state.survey.choices ? &*state.survey.choices : nullptr;
    if (options_.json) {
      base::Json json = view::check_json(round.situation, round.examination, choices);
      json["exit_code"] = code;
      return base::to_text(json, options_.watch ? -1 : 2) + "\n";
    }
    std::string page = view::check_text(round.situation, round.examination, style_);
    if (!options_.watch) return page;
    std::string time = os::iso_time(os::wall_now_ns());
    if (around_.out_terminal && around_.cursor) return kClearScreen + page + time + "\n";
    return before_ ? view::check_changes(*before_, round, time, style_) : page;
  }

  const RunOptions& options_;
  job::Job job_;
  Watcher watcher_;
  view::TerminalCapabilities around_;
  view::CheckStyle style_;
  std::optional<view::CheckRound> before_;
};

}  // namespace

base::Result<int> check_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  TRY_ASSIGN(job::Job job, make_job(options, detect_terminal()));
  if (options.sync) TRY(plan_code(job, options));
  job.check_only = true;
  job.run_id = "check";
  job.only = options.only;
  // From here on it is known what is asked for, on which hosts.

  Check check(options, std::move(job));
  TRY_ASSIGN(int code, check.look());
  while (options.watch && code != base::exit_code(base::ErrorKind::kInterrupted)) {
    TRY_ASSIGN(bool again, check.wait());
    if (!again) break;
    TRY_ASSIGN(int latest, check.look());
    if (latest == base::exit_code(base::ErrorKind::kInterrupted)) break;
    code = latest;
  }
  return code;
}

}  // namespace phalanx::cli
