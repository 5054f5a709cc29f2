// Which processes hold TCP connections to one place. Reads /proc/net/tcp, /proc/net/tcp6 and /proc/<pid>/fd.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "os/net.h"

namespace host {

// Inodes of the established sockets of this network namespace whose far end is `remote`.
std::set<uint64_t> sockets_to(const os::Endpoint& remote);
// True if one of `pids` has one of these sockets open. Processes that cannot be looked into count as having none.
bool holds_socket(const std::vector<pid_t>& pids, const std::set<uint64_t>& inodes);

// One line of /proc/net/tcp or tcp6 → inode, if it is established and goes to `remote_hex` ("0100007F:1F90"); else 0.
uint64_t match_tcp_line(std::string_view line, std::string_view remote_hex);
// The forms in which the kernel prints `endpoint` there: IPv4 also as mapped IPv6.
std::vector<std::string> proc_net_forms(const os::Endpoint& endpoint);

}  // namespace host
