// TCP sockets and the addresses of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::os {

// A numeric address, "10.0.0.1" or "fd00::1" (no brackets, no zone), and a port.
struct Endpoint {
  std::string address;
  uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
  std::string str() const;  // "10.0.0.1:29500", "[fd00::1]:29500"
};

struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // numeric
  bool loopback = false;
  bool up = false;
};
base::Result<std::vector<InterfaceAddress>> interface_addresses();

// Listening, non-blocking, close-on-exec, SO_REUSEADDR. port 0 lets the kernel choose. The backlog is what the kernel allows at most.
struct Listener {
  Fd fd;
  Endpoint endpoint;
};
base::Result<Listener> listen_tcp(const Endpoint& where);
// Closes it and frees its port at once, also while a child forked a moment ago holds a copy: close() alone leaves that copy listening.
void stop_listening(Fd& fd);

// Accepts one connection: non-blocking, TCP_NODELAY. An invalid Fd means none is waiting.
struct Accepted {
  Fd fd;
  Endpoint peer;
};
base::Result<Accepted> accept_tcp(int listener_fd);
// So many in one turn of the loop: whoever connects faster than they are taken in must keep nothing else from its turn.
inline constexpr int kAcceptsPerTurn = 64;

// Starts a non-blocking connect; the socket becomes writable when it is decided (connect_outcome).
base::Result<Fd> connect_tcp_start(const Endpoint& where);
// The same with the errno, and with the network's own word on a failure kept for take_icmp_error().
struct Attempt {
  Fd fd;
  int error_number = 0;  // of a connect that failed at once; fd is then invalid
};
Attempt connect_tcp_traced(const Endpoint& where);
// What a router, a firewall or this host's own neighbour discovery has said about a connect under way (IP_RECVERR, for TCP since
// Linux 5.8); read once.
struct IcmpError {
  int error_number = 0;
  bool v6 = false;
  int type = 0, code = 0;  // RFC 792, RFC 4443
};
std::optional<IcmpError> take_icmp_error(int fd);
int connect_outcome(int fd);  // SO_ERROR: 0 when connected, else an errno
base::Result<Endpoint> local_endpoint(int fd);
base::Result<Endpoint> peer_endpoint(int fd);
// What TCP has got through (TCP_INFO); zeros where the kernel does not say.
struct TcpProgress {
  uint64_t acknowledged_bytes = 0;
  uint64_t segments = 0;     // with data that were sent, each time one was
  uint64_t retransmits = 0;  // less those of which the receiver says that it had them already
};
TcpProgress tcp_progress(int fd);
void reset_on_close(int fd);  // unsent data is dropped, the peer sees a reset (SO_LINGER 0)
// Neighbour discovery on the link asks for this IPv4 address and has no answer (/proc/net/arp).
bool neighbour_is_silent(const std::string& address);

}  // namespace phalanx::os
