// Every TCP socket of this network namespace with what the kernel knows of it, asked for through sock_diag(7): queues, timer, what is
// not acknowledged. Works for any user.
#pragma once

#include <cstdint>
#include <map>

#include "machine/ranks/sample.h"

namespace phalanx::machine {

// By inode; without listening and closed ones. Empty where the kernel has no inet_diag.
std::map<uint64_t, SocketSample> tcp_sockets();

}  // namespace phalanx::machine
