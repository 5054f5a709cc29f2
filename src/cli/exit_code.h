// The exit code of `phalanx check`. Pure.
#pragma once

#include "cli/flags/run_options.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

// 130 if it was interrupted; 4 if a host could not be looked at (its own code if it is another); else 3 if anything as grave as
// `fail_on` was found, or if GPUs or addresses cannot be chosen; else 0.
int check_exit_code(const job::State& state, const job::Verdict& verdict, const doctor::Examination& examination, FailOn fail_on);

}  // namespace phalanx::cli
