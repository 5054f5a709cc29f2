// The parts of the table of flags (cli/flags/flags.h) that stand in files of their own.
#pragma once

#include "cli/flags/flags.h"

namespace phalanx::cli {

// A row is {flag, "name|alias" or "-n name|alias", its value, verbs, section, help}; a switch has no value.

std::span<const FlagRow> environment_flags();
std::span<const FlagRow> project_flags();
std::span<const FlagRow> measure_flags();  // of fit and bench alone
std::span<const FlagRow> move_flags();     // of environments: env
std::span<const FlagRow> life_flags();     // of runs that are there: run -d, ps, logs, attach, stop, report

}  // namespace phalanx::cli
