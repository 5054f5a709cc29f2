// What is known of the message that a verdict rests on (codes/advice.h). Pure.
#pragma once

#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {

// Fills cause.advice from the lines of its evidence, the last line first: a traceback ends with what was raised.
void add_advice(LogCause& cause);

}  // namespace phalanx::diagnosis
