#include "engine/comm/network/route.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "os/fd.h"
#include "os/net.h"

namespace phalanx::engine::comm {

std::string address_towards(const std::string& host, uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return "";
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    os::Fd fd(socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // A datagram socket's connect() only chooses the route.
    if (!fd.valid() || connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0) continue;
    auto local = os::local_endpoint(fd.get());
    if (local.ok()) return local->address;
  }
  return "";
}

}  // namespace phalanx::engine::comm
