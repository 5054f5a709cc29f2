// The first failure, cluster-wide: the earliest end, on one clock, that nobody asked for. Ranks that we stopped are victims; ranks
// that failed later by themselves are usually victims too (their peer's connection broke) and are counted, not blamed.
#include "job/supervisor.h"

#include <sys/wait.h>

#include <algorithm>

namespace job {
namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// How long the failed rank's end came before any other rank's. A rank that we stopped ended because of it, hence later, whatever the
// clocks of two busy hosts say to the millisecond.
std::optional<os::nanoseconds> lead_of(const State& state, size_t first) {
  std::optional<os::nanoseconds> lead;
  for (size_t r = 0; r < state.ranks.size(); ++r) {
    const RankState& other = state.ranks[r];
    if (r == first || !other.exited) continue;
    os::nanoseconds gap = other.at - state.ranks[first].at;
    if (other.stopped_by_us != 0) gap = std::max(gap, os::nanoseconds(0));
    if (gap.count() >= 0 && (!lead || gap < *lead)) lead = gap;
  }
  return lead;
}

}  // namespace

Verdict judge(const State& state) {
  Verdict verdict;
  std::optional<size_t> first;
  for (size_t r = 0; r < state.ranks.size(); ++r) {
    const RankState& rank = state.ranks[r];
    verdict.stopped += rank.exited && rank.stopped_by_us != 0 && rank.status != 0;
    verdict.lost += rank.lost;
    if (!rank.failed()) continue;
    ++verdict.also_failed;
    if (!first || rank.at < state.ranks[*first].at) first = r;
  }
  bool host_first = state.lost_host && (!first || state.lost_at < state.ranks[*first].at);
  if (first && !host_first) {
    const RankState& rank = state.ranks[*first];
    verdict.kind = Verdict::Kind::kRankFailed;
    verdict.rank = static_cast<int>(*first);
    verdict.host = static_cast<size_t>(state.plan->host_of(verdict.rank));
    verdict.status = rank.status;
    verdict.exit_code = code_of(rank.status);
    verdict.lead = lead_of(state, *first);
    verdict.error_file = rank.error_file;
    --verdict.also_failed;
  } else if (host_first) {
    verdict.kind = Verdict::Kind::kHostLost;
    verdict.host = *state.lost_host;
    verdict.exit_code = base::exit_code(base::ErrorKind::kUnreachable);
    verdict.refusals = {state.lost_error};
    for (size_t h = 0; h < state.hosts.size(); ++h)
      if (state.hosts[h].ended) verdict.unfit_hosts.push_back(h);
  }
  if (state.operator_signals > 0 && verdict.kind == Verdict::Kind::kDone) {
    verdict.kind = Verdict::Kind::kInterrupted;
    verdict.exit_code = base::exit_code(base::ErrorKind::kInterrupted);
  }
  return verdict;
}

}  // namespace job
