// The last line of a run that has done its work.
#pragma once

#include <chrono>
#include <string>

#include "base/json.h"
#include "base/language.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

// "4 ranks on 2 hosts finished in 3 min 12 s, after 1 restart; step 300/300, loss 1.84". progress: as in run.json, or null. Empty for a run
// that ended otherwise.
std::string end_line(const job::State& state, const job::Verdict& verdict, const base::Json& progress, std::chrono::milliseconds took,
                     base::Language language);

}  // namespace phalanx::cli
