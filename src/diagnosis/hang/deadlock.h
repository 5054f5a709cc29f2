// The proof that a run cannot go on by itself. Pure.
//
// Every rank that lives waits for another one: its main thread stands in a collective, a receive or at the store, and no thread
// computes or waits for storage. Between the two samples nothing has moved: no CPU time beyond what a clock's tick hides, no new
// process, no byte on a connection, and none is queued, so nothing is under way either. Ranks that only wait for each other wait in a
// cycle, or for one that is gone. Not to be told: with GPUs or other accelerators, whose work is not seen from outside, and of ranks
// whose stacks cannot be read. "false" is then "not proved".
#pragma once

#include "diagnosis/hang/hang.h"

namespace phalanx::diagnosis {

bool proved_deadlock(const HangInput& input);

}  // namespace phalanx::diagnosis
