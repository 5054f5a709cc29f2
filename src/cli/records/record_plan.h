// The plan of a run, from its record back to what `phalanx plan` shows (docs/formats/run-directory.md).
#pragma once

#include "base/json.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

// Into run.json, beside describe_plan(): what the ranks were given that the hosts' rows do not say. {"max_restarts", "served", "set"}: per
// host the variables that the checks chose.
void add_given(const job::State& state, base::Json& record);

// A state with job, hosts, plan and meeting as far as the record has them; without a plan where none was made. Of the variables that were
// passed on it has the names and their origins, and no values. Bounded: a record is a file.
job::State planned_state(const base::Json& record);

}  // namespace phalanx::cli
