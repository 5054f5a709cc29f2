// How fast a training goes, as it says itself: "15.3k tok/s", "31.2 samples/s". Pure.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/language.h"

namespace phalanx::view {

std::string format_count(double value);  // "999", "15.3k", "2.1M"

// Tokens where both are known; empty where neither is.
std::string speed_text(std::optional<double> tokens_per_s, std::optional<double> samples_per_s, base::Language language);
std::string speed_text(const base::Json& progress, base::Language language);  // an object of cli/live.cc

}  // namespace phalanx::view
