// "How would you send to this address?", asked of the kernel as `ip route get` does.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <algorithm>

#include <cerrno>
#include <cstring>

#include "machine/network/links.h"
#include "machine/network/netlink.h"
#include "machine/network/text.h"

namespace phalanx::machine {
namespace {

struct Request {
  nlmsghdr header{};
  rtmsg body{};
  rtattr destination{};
  unsigned char address[16] = {};
};

std::string address_text(int family, std::string_view data) {
  char text[INET6_ADDRSTRLEN] = "";
  if (data.size() < (family == AF_INET ? 4u : 16u)) return "";
  ::inet_ntop(family, data.data(), text, sizeof(text));
  return text;
}

uint32_t word(std::string_view data) {
  uint32_t value = 0;
  std::memcpy(&value, data.data(), std::min(sizeof(value), data.size()));
  return value;
}

void read_answer(const nlmsghdr& message, int family, Route& route, int64_t& interface) {
  const auto* body = static_cast<const rtmsg*>(NLMSG_DATA(&message));
  each_attribute(RTM_RTA(body), RTM_PAYLOAD(&message), [&](int type, std::string_view data) {
    if (type == RTA_OIF) interface = word(data);
    if (type == RTA_PREFSRC) route.source = address_text(family, data);
    if (type == RTA_GATEWAY) route.gateway = address_text(family, data);
    if (type == RTA_METRICS)
      each_attribute(reinterpret_cast<const rtattr*>(data.data()), data.size(), [&](int metric, std::string_view value) {
        if (metric == RTAX_MTU) route.mtu = word(value);
      });
  });
}

Route ask(Netlink& netlink, const std::string& to, const std::vector<Link>& links) {
  Route route;
  route.to = to;
  Request request;
  int family = to.find(':') == std::string::npos ? AF_INET : AF_INET6;
  size_t bytes = family == AF_INET ? 4 : 16;
  ::inet_pton(family, to.c_str(), request.address);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_len = static_cast<uint32_t>(offsetof(Request, address) + bytes);
  request.body.rtm_family = static_cast<unsigned char>(family);
  request.body.rtm_dst_len = static_cast<unsigned char>(bytes * 8);
  request.destination.rta_type = RTA_DST;
  request.destination.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
  int64_t interface = 0;
  int error = netlink.ask(request.header, [&](const nlmsghdr& m) {
    if (m.nlmsg_type == RTM_NEWROUTE) read_answer(m, family, route, interface);
  });
  if (error != 0) route.error = std::strerror(error);
  for (const Link& link : links) {
    if (link.index != interface) continue;
    route.interface = link.facts.name;
    if (route.mtu == 0) route.mtu = link.facts.mtu;
  }
  return route;
}

}  // namespace

std::vector<Route> read_routes(const std::vector<std::string>& addresses) {
  constexpr size_t kMost = 1024;
  std::vector<Route> routes;
  Netlink netlink;
  if (!netlink.ok()) return routes;
  std::vector<Link> links = kernel_links();
  for (const std::string& to : addresses) {
    if (routes.size() == kMost) break;
    if (is_address(to)) routes.push_back(ask(netlink, to, links));
  }
  return routes;
}

}  // namespace phalanx::machine
