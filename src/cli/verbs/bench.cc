// bench fabric: parse → open hosts → probe → mesh test with long bursts → table. Nothing is started.
#include <unistd.h>

#include <cstdio>

#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/launch.h"
#include "cli/make_job.h"
#include "cli/records/runs.h"
#include "job/narrate.h"
#include "os/files.h"
#include "view/fabric_view.h"
#include "view/speech.h"
#include "view/terminal/output.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

// Nothing is shown while it goes on but what takes long.
class Watcher : public job::Audience {
 public:
  explicit Watcher(base::Language language) : language_(language) {}
  void output(const job::State&, const wire::Output&, int64_t) override {}
  void progress(const job::State&, int, const wire::RankProgress&) override {}
  void note(const job::State& state, const job::Note& note) override {
    std::fputs(("phalanx: " + job::narrate(state, note, language_) + "\n").c_str(), stderr);
  }
  void event(const job::State&, const job::Event&) override {}

 private:
  base::Language language_;
};

}  // namespace

base::Result<int> bench_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  TRY_ASSIGN(job::Job job, make_job(options, detect_terminal()));
  if (job.hosts.size() < 2)
    return base::fail(base::ErrorKind::kUsage, "bench fabric needs two hosts or more").with_hint("phalanx bench fabric <host>,<host>");
  job.check_only = true;
  job.run_id = "bench";
  job.burst = options.burst;
  // From here on it is known which hosts are measured.

  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  Watcher watcher(language);
  job::Runner runner(*loop, watcher);
  TRY_ASSIGN(job::Verdict verdict, run_on_hosts(runner, std::move(job), options));
  // Every pair has been measured, or it is known why not.

  const doctor::Situation& situation = runner.state().survey.situation;
  view::Output out(*loop, STDOUT_FILENO);
  out.buffer() = options.json ? base::to_text(view::fabric_json(situation), 2) + "\n" : view::fabric_text(situation, language);
  out.drain(std::chrono::seconds(10));
  for (const base::Error& error : verdict.refusals) std::fputs(words::render(error, language_here()).c_str(), stderr);
  if (!verdict.refusals.empty()) return base::exit_code(verdict.refusals.front().kind);
  return view::fabric_holds(situation) ? 0 : base::exit_code(base::ErrorKind::kUnfit);
}

}  // namespace phalanx::cli
