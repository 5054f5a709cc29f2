// Every TCP socket of this network namespace with what the kernel knows of it, asked for through sock_diag(7): queues, timer, what is
// not acknowledged. Works for any user.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "machine/network/peer_watch.h"
#include "machine/ranks/sample.h"
#include "os/net.h"

namespace phalanx::machine {

// By inode; without listening and closed ones. Empty where the kernel has no inet_diag.
std::map<uint64_t, SocketSample> tcp_sockets();

// By cookie (unique as long as the machine runs): established ones to other machines, in the form that costs the least.
std::map<uint64_t, ConnectionCounts> connection_counts();
std::string connection_address(const ConnectionCounts& connection);

// Inodes of established sockets whose far end is `remote`. Nothing: the kernel does not answer, or not in time.
std::optional<std::set<uint64_t>> established_to(const os::Endpoint& remote);

}  // namespace phalanx::machine
