// What the supervisor has to say, in words. Pure. Host and rank first; equal things folded.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::job {

inline constexpr int kTimedOutCode = 124;  // exit code of a run that --timeout has stopped, as of timeout(1)

// "rank 5 (gpu02, local 1)"
std::string name_rank(const Plan& plan, int rank);
// "ranks 0–3 (gpu01), 5 (gpu02)"; "rank 5 (gpu02)" for one.
std::string name_ranks(const Plan& plan, const std::vector<int>& ranks, base::Language language);

std::string narrate(const State& state, const Note& note, base::Language language);

// What a failed verdict is shown as; last_lines: the end of the failed rank's stderr, log: its log file. Empty for
// kDone and kPlanned; for kChecked the hosts that could not be reached.
std::vector<base::Error> explain(const State& state, const Verdict& verdict, const std::string& last_lines, const std::string& log,
                                 base::Language language);

}  // namespace phalanx::job
