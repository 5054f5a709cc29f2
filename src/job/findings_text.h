// Findings in words, where they stand among the talk of a run: as errors that refuse it, and as a block of warnings before it.
// The full report of `check` is view's.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::job {

// "gpu02, gpu05"; "8 of 64 hosts (gpu01, gpu02, gpu03, …)"; "all 8 hosts"; empty for a finding on the job as a whole.
std::string name_hosts(const State& state, const std::vector<size_t>& hosts, base::Language language);
// The one command to type, and where: "ssh gpu02 'sudo ufw disable'" as the finding or its row has it. Empty if there is none.
std::string fix_of(const State& state, const doctor::Finding& finding, base::Language language);

// One error per finding of severity error.
std::vector<base::Error> found_errors(const State& state, base::Language language);
// What does not stop the run: warnings, and errors where these are only told. from: the first finding that has not been told yet.
std::string concerns(const State& state, size_t from, base::Language language);

}  // namespace phalanx::job
