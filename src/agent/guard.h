// Two processes stand on every host: phalanx-guard and, as its child, phalanx-agent, which is the parent of the ranks.
// Both are subreapers: whatever a rank starts, also after setsid or a double fork, falls to the agent when its own
// parent dies, and to the guard when the agent dies. So when either is killed the other ends the whole family:
//   agent killed → the guard sees its child die, kills every descendant, says so on stderr
//   guard killed → the agent sees its lifeline close, kills every descendant, says so on its stream
//   both killed  → ranks die by PR_SET_PDEATHSIG; only what a rank had put into the background can survive that
#pragma once

#include <string>

namespace phalanx::agent {

// The `agent` verb. stdin and stdout are the launcher's frames. Returns the exit code of the process: of the guard in
// one process, of the agent in the other. build: the identity of the agent's program, which the launcher wants to hear.
int run_guarded(char** argv, const std::string& build);

// How long a killed agent's processes may take to be gone.
inline constexpr int kKillMilliseconds = 1500;

}  // namespace phalanx::agent
