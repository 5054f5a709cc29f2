// A run that stands still, in words. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "base/language.h"
#include "base/result.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::job {

// What is told while the run goes on.
std::string stall_text(const State& state, const Stalled& note, base::Language language);
std::string slow_text(const State& state, const Slow& note, base::Language language);
// The error a run that was stopped for it ends with.
base::Error stall_error(const State& state, const Verdict& verdict, base::Language language);

// For run.json and events.jsonl: code, ranks, host, evidence, details, missing, fix; in English.
base::Json describe_stall(const State& state, const diagnosis::Diagnosis& verdict);

}  // namespace phalanx::job
