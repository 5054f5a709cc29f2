// logs: what the ranks of a run have printed, from their logs; with -f until the run ends.
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/records/log_reader.h"
#include "cli/records/runs.h"
#include "os/loop.h"

namespace phalanx::cli {
namespace {

using words::tr;

constexpr os::milliseconds kLook{200};  // a log reaches the disk a quarter of a second after it was printed at the latest

// The run is over: in what way, where that is worth a word.
void say_end(const logs::Run& run, base::Language language) {
  std::string state = state_of(run, nullptr);
  if (state == "done") return;
  bool lost = run.life == logs::Life::kLost;
  std::string text = lost
                         ? tr(language, "phalanx: the launcher of {0} is no longer running; phalanx stop {0} cleans up the hosts\n", run.id)
                         : tr(language, "phalanx: {0}: {1}; phalanx why {0}\n", run.id, state_word(state));
  std::fputs(base::printable_lines(text).c_str(), stderr);
}

// Lines of a run of an earlier version have no times, and those that a full disk took.
void say_untimed(const LogReader& reader) {
  if (auto rank = reader.rank_without_times())
    std::fputs(tr(language_here(), "phalanx: the times of some lines were not recorded, of rank {} for instance\n", *rank).c_str(), stderr);
}

// An empty answer could be that of a wrong question.
void say_silent(const logs::Run& run, bool going_on, base::Language language) {
  std::string text = going_on ? tr(language, "phalanx: {}: no output so far\n", run.id)
                              : tr(language, "phalanx: {0}: no output; phalanx why {0} tells how it ended\n", run.id);
  std::fputs(base::printable_lines(text).c_str(), stderr);
}

bool goes_on(const logs::Run& run) { return run.life != logs::Life::kEnded && run.life != logs::Life::kLost; }

struct Following {
  const Invocation& invocation;
  logs::Run run;
  view::Output& out;
  view::Controls controls;
  std::unique_ptr<LogReader> reader;

  // Until the plan stands nobody knows who the ranks are.
  base::Status begin() {
    std::vector<std::string> hosts = host_of_rank(run.record);
    TRY_ASSIGN(std::vector<bool> wanted, wanted_ranks(invocation, hosts));
    LogReader::Options options;
    if (auto n = invocation.value(Flag::kTail)) options.tail = int_value(*n);
    if (auto n = invocation.value(Flag::kAttempt)) options.attempt = int_value(*n);
    options.times = invocation.has(Flag::kTimestamps);
    reader = std::make_unique<LogReader>(out, run.path, std::move(hosts), std::move(wanted), controls, options);
    return base::ok();
  }
  bool known() const { return !host_of_rank(run.record).empty(); }
};

// A pipe whose reader has gone away says so without being written to.
bool unread() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLNVAL)) != 0;
}

base::Status follow(os::Loop& loop, Following& f) {
  base::Status failed = base::ok();
  auto look = [&] {
    bool known = f.reader != nullptr;
    logs::Run now = logs::look_at_run(f.run.path, f.run.id);
    bool over = !goes_on(now);
    f.run = std::move(now);
    if (!known && f.known()) failed = f.begin();
    if (f.reader) f.reader->read();
    if (over || !failed.ok() || unread() || (f.reader && f.reader->stopped())) loop.stop();
  };
  os::TimerId timer = loop.every(kLook, look);
  loop.run();
  loop.cancel(timer);
  return failed;
}

}  // namespace

base::Result<int> logs_verb(const Invocation& invocation) {
  if (invocation.has(Flag::kAttempt) && (invocation.has(Flag::kTail) || invocation.has(Flag::kFollow)))
    return base::fail(base::ErrorKind::kUsage, "--attempt cannot be combined with --tail or --follow: it shows a part of the log")
        .with_hint("keep one of them");
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  view::TerminalCapabilities around = surroundings_here(invocation);
  view::Output out(*loop, STDOUT_FILENO);
  Following f{invocation, std::move(run), out, {around.out_colour, around.out_terminal, around.utf8}, nullptr};
  bool follows = invocation.has(Flag::kFollow);
  if (f.known() || !follows || !goes_on(f.run)) TRY(f.begin());
  if (f.reader) f.reader->read();
  if (follows && goes_on(f.run)) TRY(follow(*loop, f));
  if (f.reader) f.reader->finish();
  if (!follows && f.reader && f.reader->silent() && !f.reader->trouble() && invocation.value(Flag::kTail) != "0")
    say_silent(f.run, goes_on(f.run), language_here());
  if (follows && !goes_on(f.run) && !out.closed()) say_end(f.run, language_here());
  if (f.reader && invocation.has(Flag::kTimestamps) && !out.closed()) say_untimed(*f.reader);
  if (auto trouble = f.reader ? f.reader->trouble() : std::nullopt) return *std::move(trouble);
  return 0;
}

}  // namespace phalanx::cli
