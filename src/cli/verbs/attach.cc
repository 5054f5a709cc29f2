// attach: a run watched as if it had been started here. Ctrl-C leaves it alone.
#include <unistd.h>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/records/follower.h"
#include "cli/records/record_life.h"
#include "cli/records/runs.h"
#include "os/interruptible.h"
#include "view/speech.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;

constexpr os::milliseconds kLastWords{10'000};

base::Error not_there(const logs::Run& run) {
  if (run.unreadable) return *run.unreadable;
  if (run.life == logs::Life::kEnded)
    return base::fail(ErrorKind::kUsage, fmt::format("the run {} has ended", run.id))
        .with_hint(fmt::format("phalanx logs {0}, or phalanx why {0}", run.id));
  if (run.life == logs::Life::kElsewhere)
    return base::fail(ErrorKind::kUsage, fmt::format("the run {} was started on another machine", run.id))
        .because(fmt::format("its launcher is on {}", run.launcher_host))
        .with_hint("ssh -t " + run.launcher_host + " phalanx attach " + run.id);
  return base::fail(ErrorKind::kUnreachable, fmt::format("the launcher of {} has exited", run.id)).with_hint("phalanx stop " + run.id);
}

// The last words of a run, as at its own terminal.
void say_verdict(const logs::Run& run, view::View& view) {
  const os::Interruptible by_signals;  // the disk may take its time
  logs::Run ended = logs::look_at_run(run.path, run.id);
  if (ended.record.empty())
    view.say_error((ended.unreadable
                        ? *ended.unreadable
                        : base::fail(ErrorKind::kConfig, fmt::format("cannot read the verdict of {}", run.id)).because("in " + run.path))
                       .with_hint("phalanx why " + run.id)
                       .render());
  for (const base::Error& error : words_of(ended.record, language_here())) view.say_error(words::render(error, language_here()));
}

}  // namespace

base::Result<int> attach_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  TRY(logs::must_be_ours(run));
  if (run.life != logs::Life::kAlive) return not_there(run);
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  view::Speech speech(language_here());
  view::View view(*loop, surroundings_here(invocation), speech, {.quiet = invocation.has(Flag::kQuiet)});
  base::Status selection = base::ok();
  std::function<void()> leave;
  Follower follower(*loop, run, view, [&](const std::vector<std::string>& hosts) {
    base::Result<std::vector<bool>> wanted = wanted_ranks(invocation, hosts);
    if (wanted.ok()) return std::move(wanted).value();
    selection = std::move(wanted).error();
    leave();
    return std::vector<bool>(hosts.size(), false);
  });
  leave = [&] { follower.leave(); };
  TRY(follower.connect());
  follower.when_answered([&] { view.say(words::tr(language_here(), "phalanx: attached to {0}; Ctrl-C leaves it running", run.id)); });
  follower.ask({.wish = wire::Wish::kFollow});
  TRY_ASSIGN(Follower::End end, follower.follow([] { return true; }));
  view.finish(kLastWords);
  TRY(std::move(selection));
  if (end == Follower::End::kLeft)
    view.say(words::tr(language_here(), "phalanx: the run continues; phalanx attach {0} reattaches, phalanx stop {0} stops it", run.id));
  if (end == Follower::End::kRunEnded) say_verdict(run, view);
  view.finish(kLastWords);
  if (end == Follower::End::kLeft) return 0;
  if (end == Follower::End::kRunEnded) return follower.exit_code();
  if (end == Follower::End::kSilent)
    return base::fail(ErrorKind::kTimeout, fmt::format("the launcher of {} does not answer", run.id)).with_hint("phalanx why " + run.id);
  return base::fail(ErrorKind::kUnreachable, fmt::format("the launcher of {} has died", run.id))
      .because("it closed the connection without a verdict; its hosts stop all ranks by themselves when the lease expires")
      .with_hint("phalanx stop " + run.id);
}

}  // namespace phalanx::cli
