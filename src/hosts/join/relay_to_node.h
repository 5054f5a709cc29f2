// The process that stands for an ssh client where a node has joined by itself: node 0's launcher starts it as `phalanx agent relay`, with
// the agent's stream as its stdin and stdout, and it carries the bytes over the socket on which the node joined. A child of it
// does the work, so that it can outlive it: when the agent has ended, or the launcher has killed its connections, the node still hears how
// the run ended. kRelay… are the descriptors it is given.
#pragma once

#include "os/fd.h"

namespace phalanx::hosts {

inline constexpr int kRelaySocket = 3;
inline constexpr int kRelayState = 4;    // a pipe with wire::SealedStream::state()
inline constexpr int kRelayVerdict = 5;  // a pipe; the launcher writes encode(JoinVerdict) and closes it

// The process's exit code: the agent's, as a shell has it; 255 where the node was lost, and stderr says why.
int relay_to_node();

}  // namespace phalanx::hosts
