// The first failure, cluster-wide: the earliest end, on one clock, that nobody asked for. Ranks that we stopped are victims, and so are
// those whose last words say only that another one is gone; they are counted, and blamed only where nothing else explains them: no other
// failure close by, no rank that had left before them, no host that was lost. Among them, whom something broke on comes before whom
// somebody has left.
#include "job/attempt/attempt.h"

#include <sys/wait.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "diagnosis/rank_end.h"

namespace phalanx::job {
namespace {

// A victim may be heard of before its cause: a process writes a core, a clock is off, a host's silence takes seconds to be noticed.
constexpr os::milliseconds kCauseWithin{10'000};
// Who left before a victim failed may have left a moment after it by our clocks, besides what the pings leave open.
constexpr os::milliseconds kClockError{50};

// As from waitpid: of a rank whose own status is not known, because our signal ended it before.
constexpr int kExitedWithOne = 1 << 8;

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// How long the failed rank's end came before any other rank's. A rank that we stopped ended because of it, hence later, whatever the
// clocks of two busy hosts say to the millisecond.
std::optional<os::nanoseconds> lead_of(const Attempt& attempt, size_t first) {
  std::optional<os::nanoseconds> lead;
  for (size_t r = 0; r < attempt.ranks.size(); ++r) {
    const RankState& other = attempt.ranks[r];
    if (r == first || !other.exited) continue;
    os::nanoseconds gap = other.at - attempt.ranks[first].at;
    if (other.stopped_by_us != 0) gap = std::max(gap, os::nanoseconds(0));
    if (gap.count() >= 0 && (!lead || gap < *lead)) lead = gap;
  }
  return lead;
}

diagnosis::EndReading reading_of(const RankState& rank) {
  return diagnosis::read_end({rank.status, rank.last_words, rank.error_file, rank.signs});
}

// It says nothing of itself, only that another one is gone.
bool only_left(const diagnosis::EndReading& reading) { return reading.victim && !reading.symptom; }

// What a rank said before we stopped it, if that ended it: it was on its way out (a Python program takes a while to end) when the failure
// of a victim was heard of, and is not counted as failed.
std::optional<diagnosis::EndReading> dying_words(const RankState& rank) {
  if (!rank.exited || rank.status == 0 || rank.stopped_by_us == 0) return std::nullopt;
  diagnosis::EndReading reading = diagnosis::read_end({kExitedWithOne, rank.last_words, {}, {}});
  if (only_left(reading) || reading.code == "RUN-EXIT-CODE") return std::nullopt;
  bool last = base::trim(rank.last_words).ends_with(reading.evidence);  // an exception that it went on after ended nothing
  return reading.code == "RUN-EXCEPTION" && !last ? std::nullopt : std::optional(reading);
}

struct Suspects {
  std::optional<size_t> first, cause, left;  // the earliest failure; the earliest that is no victim; who ended well before any failed
  std::optional<size_t> dying;               // the earliest of those that had said why they end when we stopped them
  std::optional<size_t> broken;              // the earliest of both on which something broke, if the first was only left
};

Suspects suspects(const Attempt& attempt, const std::vector<HostState>& hosts) {
  Suspects found;
  auto earlier = [&](size_t r, const std::optional<size_t>& than) { return !than || attempt.ranks[r].at < attempt.ranks[*than].at; };
  for (size_t r = 0; r < attempt.ranks.size(); ++r) {
    const RankState& rank = attempt.ranks[r];
    if (const std::optional<diagnosis::EndReading> words = dying_words(rank)) {
      std::optional<size_t>& place = words->victim ? found.broken : found.dying;
      if (earlier(r, place)) place = r;
    }
    if (!rank.failed()) continue;
    if (earlier(r, found.first)) found.first = r;
    const diagnosis::EndReading reading = reading_of(rank);
    if (!reading.victim && earlier(r, found.cause)) found.cause = r;
    if (reading.victim && reading.symptom && earlier(r, found.broken)) found.broken = r;
  }
  if (!found.first) return found;
  os::Mono failed_at = attempt.ranks[*found.first].at;
  if (!only_left(reading_of(attempt.ranks[*found.first])) || (found.broken && attempt.ranks[*found.broken].at - failed_at > kCauseWithin))
    found.broken.reset();
  auto clock_error = [&](size_t r) {
    const HostState& host = hosts[static_cast<size_t>(attempt.plan->host_of(static_cast<int>(r)))];
    return os::nanoseconds(host.best_round_trip_ns.value_or(0) / 2);
  };
  if (found.cause && attempt.ranks[*found.cause].at - failed_at > kCauseWithin) found.cause.reset();
  for (size_t r = 0; r < attempt.ranks.size(); ++r) {
    const RankState& rank = attempt.ranks[r];
    bool well = rank.exited && rank.status == 0 && rank.stopped_by_us == 0;
    if (well && rank.at < failed_at + kClockError + clock_error(r) + clock_error(*found.first) && earlier(r, found.left)) found.left = r;
  }
  return found;
}

void blame_rank(const Attempt& attempt, size_t r, Verdict& verdict) {
  const RankState& rank = attempt.ranks[r];
  diagnosis::EndReading reading = dying_words(rank).value_or(reading_of(rank));
  verdict.kind = Verdict::Kind::kRankFailed;
  verdict.rank = static_cast<int>(r);
  verdict.host = static_cast<size_t>(attempt.plan->host_of(verdict.rank));
  verdict.status = rank.stopped_by_us != 0 && WIFSIGNALED(rank.status) ? kExitedWithOne : rank.status;
  verdict.exit_code = code_of(verdict.status);
  verdict.lead = lead_of(attempt, r);
  verdict.error_file = rank.error_file;
  verdict.code = reading.code;
  verdict.evidence = reading.evidence;
  verdict.where = reading.where;
}

void blame_host(const Attempt& attempt, const std::vector<HostState>& hosts, Verdict& verdict) {
  verdict.kind = Verdict::Kind::kHostLost;
  verdict.host = *attempt.lost_host;
  verdict.suspended = hosts[verdict.host].forsaken;
  if (!verdict.suspended) verdict.code = attempt.lost_guard == wire::GuardEnd::kAgentKilled ? "HOST-AGENT-KILLED" : "HOST-LOST";
  verdict.exit_code = base::exit_code(base::ErrorKind::kUnreachable);
  verdict.refusals = {attempt.lost_error};
  for (size_t h = 0; h < hosts.size(); ++h)
    if (hosts[h].ended && !hosts[h].finished && !hosts[h].forsaken)
      verdict.unfit_hosts.push_back(h);  // an agent that has finished ends too
}

}  // namespace

Verdict judge(const Attempt& attempt, const std::vector<HostState>& hosts) {
  Verdict verdict;
  for (const RankState& rank : attempt.ranks) {
    verdict.stopped += rank.exited && rank.stopped_by_us != 0 && rank.status != 0;
    verdict.lost += rank.lost;
    verdict.also_failed += rank.failed();
  }
  Suspects found = suspects(attempt, hosts);
  bool lost_first = attempt.lost_host && (!found.cause || attempt.lost_at < attempt.ranks[*found.cause].at);
  if (found.cause && !lost_first) {
    blame_rank(attempt, *found.cause, verdict);
    --verdict.also_failed;
  } else if (attempt.lost_host) {
    blame_host(attempt, hosts, verdict);
  } else if (found.first && found.dying) {
    blame_rank(attempt, *found.dying, verdict);
    --verdict.stopped;
  } else if (found.left) {
    blame_rank(attempt, *found.left, verdict);
    verdict.exit_code = code_of(attempt.ranks[*found.first].status);
    verdict.code = "RUN-LEFT-EARLY";
    verdict.evidence = reading_of(attempt.ranks[*found.first]).evidence;
    verdict.where.clear();
  } else if (found.first) {
    const size_t blamed = found.broken.value_or(*found.first);
    blame_rank(attempt, blamed, verdict);
    --(attempt.ranks[blamed].failed() ? verdict.also_failed : verdict.stopped);
  }
  if (attempt.operator_signals > 0 && verdict.kind == Verdict::Kind::kDone) {
    verdict.kind = Verdict::Kind::kInterrupted;
    verdict.exit_code = base::exit_code(base::ErrorKind::kInterrupted);
  }
  return verdict;
}

}  // namespace phalanx::job
