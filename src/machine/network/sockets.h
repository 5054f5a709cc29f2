// Which processes hold which TCP sockets: by the kernel's answer, or /proc/net/tcp and tcp6, and by /proc/<pid>/fd.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "os/clock.h"
#include "os/net.h"

namespace phalanx::machine {

// Inodes of the established sockets of this network namespace whose far end is `remote`: as the kernel answers
// (machine/network/tcp_sockets.h), or else by its tables, which take a kernel with a large hash of connections milliseconds.
std::set<uint64_t> sockets_to(const os::Endpoint& remote);
std::set<uint64_t> sockets_in_tables(const os::Endpoint& remote);
// True if one of `pids` has one of these sockets open. Processes that cannot be looked into count as having none.
bool holds_socket(const std::vector<pid_t>& pids, const std::set<uint64_t>& inodes);

struct Listener {
  int port = 0;
  std::string address;  // "0.0.0.0", "::"
  uint64_t inode = 0;
  uid_t uid = 0;
};
// One line of /proc/net/tcp or tcp6, if its socket listens.
bool parse_listener(std::string_view line, Listener& listener);
// Listening sockets of this network namespace (or of the tree at `root`) on one of `ports`.
std::vector<Listener> listeners(const std::string& root, const std::vector<int>& ports);
// Which process has each of these sockets open (the lowest pid); those that cannot be looked into, or come after `budget` has passed,
// are not found.
std::map<uint64_t, int64_t> holders(const std::string& root, const std::set<uint64_t>& inodes, os::milliseconds budget);

// One line of /proc/net/tcp or tcp6 → inode, if it is established and goes to `remote_hex` ("0100007F:1F90"); else 0.
uint64_t match_tcp_line(std::string_view line, std::string_view remote_hex);
// The forms in which the kernel prints `endpoint` there: IPv4 also as mapped IPv6.
std::vector<std::string> proc_net_forms(const os::Endpoint& endpoint);

}  // namespace phalanx::machine
