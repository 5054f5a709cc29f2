// Findings that the user has accepted: they stay listed, but count neither as errors nor as warnings. Pure.
#pragma once

#include <string>
#include <vector>

#include "doctor/examine.h"

namespace phalanx::doctor {

struct Acceptance {
  std::string code;                // as in the catalogue
  std::vector<std::string> hosts;  // names; empty: on every host, and of the job as a whole
};

// Marks the findings that `accepted` names and counts again. A finding of which only some hosts are accepted becomes two. Accepted findings
// come last, in the order they had.
void accept(const Situation& situation, const std::vector<Acceptance>& accepted, Examination& examination);

}  // namespace phalanx::doctor
