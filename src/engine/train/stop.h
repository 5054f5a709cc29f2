// A polite stop: the first SIGTERM or SIGINT only sets a mark, the loop looks at it after each step; the second one ends the
// process as it always did.
#pragma once

namespace phalanx::engine::train {

// Call it when the loop begins: before that (loading, connecting) a signal should end the process at once.
void catch_stop_signals();
int stop_signal();  // the signal that came, 0 if none

}  // namespace phalanx::engine::train
