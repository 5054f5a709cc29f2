// TCP sockets and the addresses of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace os {

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

// Accepts one connection: non-blocking, TCP_NODELAY. An invalid Fd means none is waiting.
struct Accepted {
  Fd fd;
  Endpoint peer;
};
base::Result<Accepted> accept_tcp(int listener_fd);

// Starts a non-blocking connect; the socket becomes writable when it is decided (connect_outcome).
base::Result<Fd> connect_tcp_start(const Endpoint& where);
int connect_outcome(int fd);  // SO_ERROR: 0 when connected, else an errno
base::Result<Endpoint> local_endpoint(int fd);
base::Result<Endpoint> peer_endpoint(int fd);

}  // namespace os
