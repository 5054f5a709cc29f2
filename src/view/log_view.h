// What `phalanx explain FILE…` found in logs, for people and as JSON (docs/formats/explain-json.md). Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::view {

// columns: of the terminal. notes: what could not be read, one sentence each.
std::string log_report(const diagnosis::LogVerdict& verdict, const std::vector<doctor::Words>& notes, base::Language language,
                       size_t columns);

// English whatever the language.
base::Json log_json(const diagnosis::LogVerdict& verdict, const std::vector<doctor::Words>& notes);

}  // namespace phalanx::view
