// run, plan and train: parse → open hosts → probe → check → plan → launch → supervise → report.
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/by_hand/manual_nodes.h"
#include "cli/detach.h"
#include "cli/flags/verbs.h"
#include "cli/launch.h"
#include "cli/make_job.h"
#include "cli/records/check_memory.h"
#include "cli/script_word.h"
#include "cli/show.h"
#include "cli/sync_code.h"
#include "job/narrate.h"
#include "logs/runs/run_directory.h"
#include "os/apart.h"
#include "os/files.h"
#include "os/wait_notice.h"
#include "view/speech.h"

namespace phalanx::cli {
namespace {

constexpr os::milliseconds kKeepPatience{1000};  // for the disk of the cache
constexpr os::milliseconds kSlowStart{2000};     // after which a start that waits for a disk says so

// Until its loop runs, the launcher itself reads and makes files: those of the cache, and the folder of the run.
std::string slow_start_text(const RunOptions& options, const std::string& cache) {
  base::Result<std::string> runs = logs::RunDirectory::base_folder(options.log_dir);
  const std::string folders = (runs.ok() ? *runs : "") + (runs.ok() && !cache.empty() ? ", " : "") + cache;
  const base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  return words::tr(language,
                   "warning: {}: no answer for {}; nothing has been started yet\n\nhint: wait, or press Ctrl-C and choose other "
                   "directories with --log-dir and XDG_CACHE_HOME\n",
                   folders, base::format_duration(kSlowStart));
}

// `train CONFIG …` is `run` of the engine, which lies beside this binary or in PATH.
void put_engine_in_front(RunOptions& options) {
  std::string self = os::self_executable();
  std::string beside = self.substr(0, self.rfind('/') + 1) + "phalanx-train";
  if (options.check_data) options.command.insert(options.command.begin(), "--check-data");
  options.command.insert(options.command.begin(), os::exists(beside) ? beside : "phalanx-train");
}

// The data is walked once, where the first ranks would read it.
void take_one_rank(RunOptions& options) {
  options.nnodes = 1;
  options.least_nodes.reset();
  options.ranks_per_host = RanksPerHost{RanksPerHost::Kind::kCount, 1};
}

// joined: the other nodes of a run that was started by hand; else null.
base::Result<int> run_job(const Invocation& invocation, const RunOptions& options, hosts::JoinedNodes* joined) {
  TRY_ASSIGN(job::Job job, make_job(options, detect_terminal()));
  job.or_cpus = invocation.verb == Verb::kTrain;
  if (joined) add_joined(*joined, job);
  TRY(check_first_word(invocation, job.directory, os::environment_value("PATH")));
  const std::string slow = slow_start_text(options, cache_folder());
  std::optional<os::WaitNotice> notice(std::in_place, slow, kSlowStart);
  SyncedCode code;
  if (options.sync) TRY(check_copied_script(invocation, job.directory));
  if (options.sync && options.dry_run) TRY(plan_code(job, options));
  if (options.sync && !options.dry_run) {
    notice.reset();
    TRY_ASSIGN(code, sync_code(job, options));
  }
  CheckMemory memory(job, options.reuse_checks);
  const auto remembered = std::make_shared<job::Remembered>();  // read below, while the hosts are dialed
  job.remembered = remembered;
  // From here on it is known what is asked for, on which hosts.

  Detached parted;
  if (options.detach) {
    notice.reset();
    TRY_ASSIGN(parted, part(options.quiet, view::choose_language([](const char* name) { return os::environment_value(name); })));
    if (parted.exit_code) return *parted.exit_code;
    notice.emplace(slow, kSlowStart);
  }
  // With -d this is the child from here on, in a session of its own.

  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  loop->after(os::milliseconds(0), [&notice, &memory, remembered] {
    if (std::shared_ptr<job::Remembered> kept = memory.load()) *remembered = std::move(*kept);
    notice.reset();
  });
  TRY_ASSIGN(Show show, Show::open(*loop, options, job));
  job.run_id = show.run_id();
  if (!code.name.empty()) show.synced(describe(code));
  // From here on the run has an id and, unless it is only planned, a directory.

  job::Runner runner(*loop, show.audience());
  show.on_stop([&runner](std::optional<os::milliseconds> grace, bool kill) { runner.stop(grace, kill); });
  show.on_look([&] { runner.look([&show](const std::string& json) { show.looked(json); }); });
  bool timed_out = false;
  if (options.timeout)
    loop->after(*options.timeout, [&] {
      timed_out = true;
      show.timed_out();
      runner.time_out(*options.timeout);
    });
  if (parted.word.valid()) show.leave_when_started(std::move(parted.word), [&runner] { runner.ignore_hangup(); });
  TRY_ASSIGN(job::Verdict verdict, run_on_hosts(runner, std::move(job), options, joined));
  if (timed_out && verdict.kind == job::Verdict::Kind::kInterrupted) verdict.exit_code = job::kTimedOutCode;
  // Every rank has ended, every host has said that nothing is left.

  const base::Result<pid_t> keeping = os::fork_apart("phalanx-copy", {}, [&] { memory.keep(runner.state(), verdict); });
  const int exit_code = show.report(runner.state(), verdict);
  (void)os::wait_apart(keeping, kKeepPatience);
  // What lost contact may still be writing until its lease is over.
  if (!code.name.empty() && verdict.kind != job::Verdict::Kind::kHostLost) release_code(code, options);
  return exit_code;
}

}  // namespace

base::Result<int> run_verb(const Invocation& invocation) {
  const Pod pod = this_pod();
  TRY_ASSIGN(RunOptions options, run_options(invocation, &pod));
  tell_pod_place(options);
  if (invocation.verb == Verb::kTrain) put_engine_in_front(options);
  if (options.check_data) take_one_rank(options);
  if (!options.node_rank) return run_job(invocation, options, nullptr);
  if (*options.node_rank > 0) return take_part(options);
  TRY_ASSIGN(const std::unique_ptr<hosts::JoinedNodes> joined, gather_nodes(options));
  options.nnodes = 1;  // of the hosts that this machine names: itself
  base::Result<int> code = run_job(invocation, options, joined.get());
  joined->tell_all(verdict_for_nodes(code));
  return code;
}

}  // namespace phalanx::cli
