// stop: ask the launcher → wait for the end → log in to every host again and prove that nothing is left.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/launch.h"
#include "cli/records/follower.h"
#include "cli/records/named_run.h"
#include "cli/records/record_life.h"
#include "cli/records/run_events.h"
#include "cli/records/runs.h"
#include "cli/records/stop_hints.h"
#include "job/supervisor/supervisor.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/interruptible.h"
#include "view/speech.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;
using words::Text;
using words::tr;

constexpr os::milliseconds kLastWords{10'000};
// After a launcher's end its agents have said that nothing is left. After its death they end when their lease has run out.
constexpr os::milliseconds kAfterEnd{1000};
constexpr os::milliseconds kAfterLease{2000};

class Stop {
 public:
  Stop(const Invocation& invocation, os::Loop& loop, view::View& view) : invocation_(invocation), loop_(loop), view_(view) {}

  // 0: nothing is left anywhere.
  base::Result<int> stop(logs::Run run) {
    TRY(logs::must_be_ours(run));
    if (run.life == logs::Life::kElsewhere)
      return base::fail(ErrorKind::kUsage, fmt::format("the run {} was started on another machine", run.id))
          .because(fmt::format("its launcher is on {}", run.launcher_host))
          .with_hint("ssh -t " + run.launcher_host + " phalanx stop " + run.id);
    bool was_lost = run.life == logs::Life::kLost;
    if (run.life == logs::Life::kAlive) TRY(end_it(run));
    TRY(end_by_signals());
    const os::Interruptible by_signals;  // it reads files from here on
    run = logs::look_at_run(run.path, run.id);
    if (run.unreadable) return *std::move(run.unreadable);
    TRY(logs::must_be_ours(run));  // the record of this look is what decides where to log in
    if (run.life == logs::Life::kLost) view_.say("phalanx: " + tr(language_here(), "{}: the launcher is dead", run.id));
    else if (!was_lost) view_.say("phalanx: " + tr(language_here(), "{}: {}", run.id, state_word(state_of(run, nullptr))));
    return prove(run);
  }

 private:
  // Nothing of the run depends on this process any more: Ctrl-C ends it, also while the loop runs.
  base::Status end_by_signals() {
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      TRY(loop_.on_signal(s, [](const signalfd_siginfo& info) {
        const os::Interruptible now;
        ::raise(static_cast<int>(info.ssi_signo));
      }));
    return base::ok();
  }

  base::Status end_it(const logs::Run& run) {
    Follower follower(loop_, run, view_, [](const std::vector<std::string>& hosts) { return std::vector<bool>(hosts.size(), false); });
    base::Status connected = follower.connect();
    if (!connected.ok()) {
      // It may have ended at this very moment.
      if (logs::look_at_run(run.path, run.id).life != logs::Life::kAlive) return base::ok();
      return silent(run, connected.error().cause);
    }
    wire::Ask ask{.wish = wire::Wish::kStop, .kill = invocation_.has(Flag::kKill)};
    if (auto grace = invocation_.value(Flag::kGrace)) ask.grace_ms = duration_value(*grace).count();
    follower.ask(ask);
    bool asked_twice = false;
    // Ctrl-C here does to the run what Ctrl-C there would do a second time: no more grace.
    TRY_ASSIGN(Follower::End end, follower.follow([&] {
      if (asked_twice) return true;
      asked_twice = true;
      follower.ask({.wish = wire::Wish::kStop});
      return false;
    }));
    if (end == Follower::End::kLeft)
      return base::fail(ErrorKind::kInterrupted, fmt::format("interrupted; the run {} is being stopped", run.id));
    if (end == Follower::End::kSilent) return silent(run, "it accepted the connection but sent nothing");
    return base::ok();
  }

  static base::Error silent(const logs::Run& run, const std::string& why) {
    base::Error error = base::fail(ErrorKind::kTimeout, fmt::format("the launcher of {} does not answer", run.id)).because(why);
    auto launcher = run.record.find("launcher");
    const os::ProcessMark mark = launcher == run.record.end() ? os::ProcessMark{} : logs::mark_of(*launcher);
    error.hint = hint_for_silent_launcher(mark, run.id);
    return error;
  }

  base::Result<int> prove(const logs::Run& run) {
    TRY_ASSIGN(Reached reached, reach_of(run.record));
    // What was started for the run is seen from the host, and a line of sh is not taken from a file.
    for (hosts::Target& host : reached.hosts)
      if (host.container.made_for_run() || host.container.kind == hosts::Container::Kind::kCommand) host.container = {};
    RunOptions options;
    options.ssh_options = invocation_.values(Flag::kSshOption);
    TRY(add_recorded(options.ssh_options, reached.ssh_options, "phalanx stop " + run.id));
    if (auto timeout = invocation_.value(Flag::kConnectTimeout)) options.connect_timeout = duration_value(*timeout);
    base::Result<Pids> pids = started_pids(run.path);
    if (!pids.ok()) view_.say_error(pids.error().render());
    job::SweepRequest wish{run.id, run.life == logs::Life::kLost ? lease_of(run.record) + kAfterLease : kAfterEnd,
                           pids_by_host(pids.ok() ? *pids : Pids(), reached)};
    if (invocation_.has(Flag::kKill)) wish.patience = os::milliseconds(0);
    TRY_ASSIGN(std::vector<job::SweptHost> hosts, sweep_hosts(loop_, reached.hosts, options, std::move(wish)));
    // Without that list only processes that carry the run's mark are found: nothing is proved.
    int code = pids.ok() ? 0 : base::exit_code(ErrorKind::kUnfit);
    for (const job::SweptHost& host : hosts) code = std::max(code, tell(host));
    if (code == 0 && run.life == logs::Life::kLost) settle(run);
    return code;
  }

  using Pids = std::map<std::string, std::set<int64_t>>;
  static std::vector<std::set<int64_t>> pids_by_host(Pids pids, const Reached& reached) {
    std::vector<std::set<int64_t>> out;
    for (const hosts::Target& host : reached.hosts) out.push_back(pids[host.name]);
    return out;
  }

  int tell(const job::SweptHost& host) {
    if (!host.answered) {
      base::Error error = host.error.value_or(base::fail(ErrorKind::kUnreachable, fmt::format("{}: the host does not answer", host.name)));
      view_.say_error(error.render());
      return base::exit_code(ErrorKind::kUnreachable);
    }
    int killed = 0;
    for (const wire::SweptProcess& p : host.swept.found) {
      killed += p.gone;
      if (!p.gone) view_.say_error(tr(language_here(), "{}: process {} could not be killed: {}", host.name, p.pid, p.command));
    }
    tell_unseen(host);
    for (const job::GpuHeld& held : host.held)
      view_.say_error(tr(language_here(), "{}: GPU {} still holds {} of process {}", host.name, held.gpu,
                         base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, held.bytes))), held.pid));
    if (killed > 0) view_.say_error(tr(language_here(), "{}: killed {} processes of the run", host.name, killed));
    if (!host.clean()) return base::exit_code(ErrorKind::kUnfit);
    view_.say_error(host.gpus_seen ? tr(language_here(), "{}: nothing left, including on its GPUs", host.name)
                                   : tr(language_here(), "{}: nothing left", host.name));
    return 0;
  }

  // What could not be looked at may be of the run: nothing is claimed then, and the user is shown how to look.
  void tell_unseen(const job::SweptHost& host) {
    for (const wire::SweptUnseen& what : host.swept.unseen) {
      base::Error error = base::fail(
          ErrorKind::kUnfit, host.name + tr(language_here(), ": cannot tell whether this process belongs to the run: {}", what.text));
      error.hint = hint_to_look(host.name, what.pid);
      view_.say_error(error.render());
    }
  }

  // A lost run whose hosts are proved empty is over.
  void settle(const logs::Run& run) {
    auto words = [](Text text, base::Language language) { return base::Json{{{"message", text.in(language)}}}; };
    constexpr Text kText{"the launcher died without recording a verdict; phalanx stop found nothing left on the hosts"};
    base::Status written = logs::rewrite_record(run, [&](base::Json& record) {
      record["state"] = "ended";
      record["ended"] = os::iso_time(os::wall_now_ns());
      record["verdict"] = "lost";
      record["exit_code"] = base::exit_code(ErrorKind::kUnreachable);
      record["explained"] = {{"en", words(kText, base::Language::kEnglish)}, {"zh", words(kText, base::Language::kChinese)}};
    });
    if (!written.ok()) view_.say_error(written.error().render());
  }

  const Invocation& invocation_;
  os::Loop& loop_;
  view::View& view_;
};

// Without an operand: the one run of this user that has not ended.
base::Result<std::vector<logs::Run>> runs_to_stop(const Invocation& invocation) {
  TRY_ASSIGN(std::string folder, runs_folder(invocation));
  std::vector<logs::Run> runs;
  for (const std::string& word : invocation.operands) {
    TRY_ASSIGN(logs::Run run, find_named_run(folder, word, OfOneName::kGoingOn));
    runs.push_back(std::move(run));
  }
  if (!runs.empty()) return runs;
  TRY_ASSIGN(std::vector<logs::Run> all, logs::list_runs(folder));
  for (logs::Run& run : all)
    if (run.ours && (run.life == logs::Life::kAlive || run.life == logs::Life::kLost)) runs.push_back(std::move(run));
  if (runs.empty()) return base::fail(ErrorKind::kUsage, "there is no run to stop").with_hint("phalanx ps -a");
  if (runs.size() > 1)
    return base::fail(ErrorKind::kUsage, base::counted("{} runs have not ended; name the one to stop", runs.size()))
        .with_hint("phalanx stop " + runs.front().id);
  return runs;
}

}  // namespace

base::Result<int> stop_verb(const Invocation& invocation) {
  TRY_ASSIGN(std::vector<logs::Run> runs, runs_to_stop(invocation));
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  view::Speech speech(language_here());
  view::View view(*loop, surroundings_here(invocation), speech, {.quiet = invocation.has(Flag::kQuiet), .bar = false});
  int code = 0;
  for (logs::Run& run : runs) {
    base::Result<int> stopped = Stop(invocation, *loop, view).stop(std::move(run));
    if (!stopped.ok()) view.say_error(stopped.error().render());
    code = std::max(code, stopped.ok() ? *stopped : base::exit_code(stopped.error().kind));
    view.finish(kLastWords);
  }
  return code;
}

}  // namespace phalanx::cli
