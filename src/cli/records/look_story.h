// A look at a running job (job/look.h), told in a few lines: what each rank does, equal ranks together, and who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"

namespace phalanx::cli {

// look: of job::ask_look. What in it is of the wrong kind is left out. Every line is safe to show.
std::vector<std::string> look_lines(const base::Json& look, base::Language language);

}  // namespace phalanx::cli
