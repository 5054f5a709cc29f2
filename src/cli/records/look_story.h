// A look at a running job (job/look.h), told in a few lines: what each rank does, equal ranks together, and who waits for whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "logs/runs/run_list.h"

namespace phalanx::cli {

// look: of job::ask_look. What in it is of the wrong kind is left out. Every line is safe to show.
std::vector<std::string> look_lines(const base::Json& look, base::Language language);

// How a step's time compares with that of the last earlier run of the same command in the same directory on fewer ranks. Empty: there is
// none, or a time is not known. record, step_s: of this run; earlier: newest first. Pure.
std::string scaling_line(const base::Json& record, std::optional<double> step_s, const std::vector<logs::Run>& earlier,
                         base::Language language);

}  // namespace phalanx::cli
