// What is known of the message that a verdict rests on (codes/advice.h). Pure.
#pragma once

#include <string_view>
#include <vector>

#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {

// Whether a code says no more than that a program failed: what is known of its message is worth more than the code's page.
bool says_little(std::string_view code);

// Fills cause.advice from these lines, the last line first: a traceback ends with what was raised.
void add_advice(LogCause& cause, const std::vector<LogEvidence>& lines);

// From the lines that the verdict rests on; where they have none and the code says little, from those of the other candidates.
void add_advice(LogVerdict& verdict);

}  // namespace phalanx::diagnosis
