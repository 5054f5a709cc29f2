// What has changed between two looks of `phalanx check --watch`, for a log. Pure.
#pragma once

#include <string>

#include "view/check/view.h"

namespace phalanx::view {

struct CheckRound {
  doctor::Situation situation;
  doctor::Examination examination;
};

// A line for each code and host that is new, and for each that is gone, beginning with `time`; empty if nothing has changed. What a
// finding says of a host (how full, how long) may change without being news.
std::string check_changes(const CheckRound& before, const CheckRound& now, std::string_view time, const CheckStyle& style);

}  // namespace phalanx::view
