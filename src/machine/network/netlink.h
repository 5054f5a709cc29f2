// One question to a socket of the kernel (routes, links, sockets) and its answers.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "os/fd.h"

namespace phalanx::machine {

class Netlink {
 public:
  explicit Netlink(int family = NETLINK_ROUTE);
  bool ok() const { return socket_.valid(); }
  // Sends `request` (an nlmsghdr with its body) and hands every answer to `each` until the last. Returns 0 or an errno: the
  // kernel's own answer, or ETIMEDOUT where it says nothing for half a second.
  int ask(const nlmsghdr& request, const std::function<void(const nlmsghdr&)>& each);

 private:
  os::Fd socket_;
  uint32_t sequence_ = 0;
};

// Attributes of a message body, in their order.
void each_attribute(const rtattr* first, size_t bytes, const std::function<void(int type, std::string_view data)>& each);

}  // namespace phalanx::machine
