// check: parse → open hosts → probe → mesh test → examine → report. Nothing is started.
#include <unistd.h>

#include <cstdio>

#include "cli/launch.h"
#include "cli/make_job.h"
#include "cli/verbs.h"
#include "job/findings_text.h"
#include "job/narrate.h"
#include "os/files.h"
#include "view/output.h"
#include "view/speech.h"

namespace cli {
namespace {

// Nothing is shown while the checks go on but what takes long.
class Watcher : public job::Audience {
 public:
  explicit Watcher(base::Language language) : language_(language) {}
  void output(const job::State&, const wire::Output&, int64_t) override {}
  void progress(const job::State&, int, const wire::RankProgress&) override {}
  void note(const job::State& state, const job::Note& note) override {
    std::fputs(("phalanx: " + job::narrate(state, note, language_) + "\n").c_str(), stderr);
  }
  void event(const job::State&, const job::Event&) override {}
  bool ready() const override { return true; }

 private:
  base::Language language_;
};

const char* word(doctor::Severity severity) {
  switch (severity) {
    case doctor::Severity::kError: return "error";
    case doctor::Severity::kWarning: return "warning";
    case doctor::Severity::kNote: return "note";
  }
  return "";
}

std::string findings(const job::State& state, base::Language language) {
  std::string out;
  for (const doctor::Finding& finding : state.checks.examination.findings) {
    std::string hosts = job::name_hosts(state, finding.hosts, language);
    out += std::string(word(finding.row->severity)) + " " + std::string(finding.row->code) + " " + hosts + (hosts.empty() ? "" : ": ") +
           std::string(finding.row->title.in(language)) + "\n    " + finding.evidence.in(language) + "\n";
    if (std::string fix = job::fix_of(state, finding, language); !fix.empty()) out += "    $ " + fix + "\n";
  }
  return out;
}

}  // namespace

base::Result<int> check_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  TRY_ASSIGN(job::Job job, make_job(options, look_around()));
  job.check_only = true;
  job.run_id = "check";
  // From here on it is known what is asked for, on which hosts.

  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  Watcher watcher(language);
  job::Runner runner(*loop, watcher);
  TRY_ASSIGN(job::Verdict verdict, run_on_hosts(runner, std::move(job), options));
  // Every host has been looked at, or it is known why not.

  view::Output out(*loop, STDOUT_FILENO);
  out.buffer() = findings(runner.state(), language);
  out.drain(std::chrono::seconds(10));
  for (const base::Error& error : job::explain(runner.state(), verdict, "", "", language)) std::fputs(error.render().c_str(), stderr);
  return verdict.exit_code;
}

}  // namespace cli
