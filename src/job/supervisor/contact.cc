// Hosts that fall silent or are lost, and a launcher that did not run itself.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "job/supervisor/step.h"

namespace phalanx::job {
namespace {

constexpr os::milliseconds kSlept{2500};  // between two ticks: we did not run
constexpr os::milliseconds kLate{700};    // we ran too late for a deadline of the checks
constexpr os::milliseconds kForsakenMargin{
    2000};  // the last ping before we slept was sent up to a second earlier, and agents look twice a second

base::Error suspended_error(os::nanoseconds slept, os::milliseconds lease) {
  auto time = [](os::nanoseconds t) { return base::format_duration(std::chrono::duration_cast<os::milliseconds>(t)); };
  return base::fail(base::ErrorKind::kUnreachable, fmt::format("the launcher was suspended for {}", time(slept)))
      .because(fmt::format("its hosts stop their ranks after losing contact with the launcher for {}", time(lease)))
      .with_hint(fmt::format("keep the machine of the launcher awake, or allow more time: --lease {}",
                             time(std::max<os::nanoseconds>(2 * slept, lease))));
}

}  // namespace

// How long we had not run, when what happens now comes of that.
os::nanoseconds Step::slept_for() const { return now - s.woke_at < kHostPatience ? s.slept : os::nanoseconds(0); }

void Step::on(const HostEnded& event) {
  size_t h = event.host;
  HostState& host = s.hosts[h];
  if (host.ended) return;
  host.ended = true;
  host.ended_at = now;
  host.forsaken = slept_for() + kForsakenMargin >= s.job.lease;
  if (s.phase == Phase::kFinishing) return attempt().maybe_finished();
  if (s.phase == Phase::kEnded) return;
  if (s.job.check_only) return missed(h, event.error);
  base::Error error = host.forsaken ? suspended_error(slept_for(), s.job.lease) : event.error;
  if (s.phase < Phase::kRunning) return attempt().refuse(h, std::move(error));
  attempt().lost(h, std::move(error), event.guard);
}

// A host that cannot be opened, or ends during the checks. A run is refused for it; `check` reports on the others.
void Step::missed(size_t h, const base::Error& error) {
  s.hosts[h].refusal = error;
  if (s.phase == Phase::kOpening) {
    if (all_hosts(s.hosts, [](const HostState& x) { return x.open || x.ended; })) begin_survey();
    return;
  }
  if (surveys()) survey().missed(h, error), surveyed();
}

// Asked only while ranks run: before, an agent may be busy with what it was told to do.
bool Step::deaf(const HostState& host) const {
  if (s.phase != Phase::kRunning || host.heard_since >= kTalkative) return false;
  return now - std::max(host.answered, s.started_at) >= kHostPatience;
}

// Called for every event, before anything is judged by a clock: the loop looks at its descriptors before its timers, so that the end of a
// host may be the first thing we see after waking. While we did not run, nothing could be heard of anybody, and no time of theirs has
// passed.
void Step::notice_sleep() {
  const os::nanoseconds gap = now - s.ticked;
  if (gap <= kLate) return;
  s.ticked = now;
  if (s.survey.deadline) s.survey.deadline = *s.survey.deadline + gap;
  const bool slept = gap > kSlept;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!turn().alive(h)) continue;
    // Several short stalls of a busy machine add up to the silence of a host that was not even pinged: of each, only a little counts.
    for (os::Mono* last : {&s.hosts[h].heard, &s.hosts[h].answered}) *last = slept ? now : std::min(now, *last + (gap - kLate));
  }
  if (!slept) return;
  s.slept = gap;
  s.woke_at = now;
}

void Step::check_silence() {
  s.ticked = now;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    HostState& host = s.hosts[h];
    if (!turn().alive(h)) continue;
    if (now - host.pinged >= kPingEvery) turn().ping(h);
    const bool silent = now - host.heard >= kHostPatience;
    if (!silent && !deaf(host)) continue;
    actions.push_back(CutHost{h});
    const std::string why = silent ? "no response for {} s: the host is down, hung, or unreachable"
                                   : "no answer for {} s, although data still arrives from the host: data sent to it does not arrive";
    base::Error lost = base::fail(base::ErrorKind::kUnreachable, fmt::format("{}: lost contact with the host", s.job.hosts[h].target.name))
                           .because(fmt::format(fmt::runtime(why), kHostPatience.count() / 1000))
                           .with_hint("ping -c 3 " + s.job.hosts[h].target.name);
    on(HostEnded{h, std::move(lost)});
  }
}

}  // namespace phalanx::job
