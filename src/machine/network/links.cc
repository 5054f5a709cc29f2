#include "machine/network/links.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "machine/network/netlink.h"
#include "machine/network/text.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostLinks = 1024;

bool begins(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return name.substr(0, w.size()) == w; });
}

template <typename T>
T as(std::string_view data) {
  T value{};
  std::memcpy(&value, data.data(), std::min(sizeof(T), data.size()));
  return value;
}

std::string text_of(std::string_view data) { return std::string(data.substr(0, data.find('\0'))); }

const char* operational(int state) {
  static constexpr const char* kNames[] = {"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"};
  return state >= 0 && state < 7 ? kNames[state] : "unknown";
}

std::string hardware_address(std::string_view data) {
  std::string text;
  for (size_t i = 0; i < data.size() && i < 20; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%s%02x", i ? ":" : "", static_cast<unsigned char>(data[i]));
    text += byte;
  }
  return text;
}

void read_statistics(std::string_view data, Interface& i) {
  auto s = as<rtnl_link_stats64>(data);
  i.rx_packets = static_cast<int64_t>(s.rx_packets);
  i.tx_packets = static_cast<int64_t>(s.tx_packets);
  i.rx_errors = static_cast<int64_t>(s.rx_errors);
  i.tx_errors = static_cast<int64_t>(s.tx_errors);
  i.rx_dropped = static_cast<int64_t>(s.rx_dropped);
}

// ethtool's questions need any socket and the name; -1 where the driver does not know.
template <typename Question>
bool ethtool(int socket, const std::string& name, Question& question) {
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&question);
  return ::ioctl(socket, SIOCETHTOOL, &request) == 0;
}

void ask_driver(int socket, Link& link) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (ethtool(socket, link.facts.name, driver)) {
    link.facts.driver = driver.driver;
    std::string bus = driver.bus_info;
    if (bus.size() == 12 && bus[4] == ':') link.facts.pci = base::to_lower(bus);
  }
  ethtool_cmd speed{};
  speed.cmd = ETHTOOL_GSET;
  if (link.facts.running && ethtool(socket, link.facts.name, speed)) {
    uint32_t mbps = ethtool_cmd_speed(&speed);
    if (mbps != static_cast<uint32_t>(SPEED_UNKNOWN) && mbps != 65535 && mbps < 10'000'000) link.facts.speed_mbps = mbps;
  }
  if (link.facts.pci.empty()) return;
  base::Result<std::string> node = os::read_file("/sys/bus/pci/devices/" + link.facts.pci + "/numa_node", 64);
  base::Result<int64_t> value = node.ok() ? base::parse_int(base::trim(*node), -1, 4096) : base::parse_int("-1", -1, 0);
  if (value.ok()) link.facts.numa_node = *value;
}

Link link_of(const nlmsghdr& message, std::vector<std::pair<int64_t, int64_t>>& masters) {
  const auto* info = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  Link link;
  link.index = info->ifi_index;
  link.hardware = info->ifi_type;
  Interface& f = link.facts;
  f.up = info->ifi_flags & IFF_UP;
  f.running = info->ifi_flags & IFF_RUNNING;
  f.loopback = info->ifi_flags & IFF_LOOPBACK;
  f.state = "unknown";
  each_attribute(IFLA_RTA(info), IFLA_PAYLOAD(&message), [&](int type, std::string_view data) {
    if (type == IFLA_IFNAME) f.name = text_of(data);
    if (type == IFLA_MTU) f.mtu = as<uint32_t>(data);
    if (type == IFLA_OPERSTATE) f.state = operational(as<uint8_t>(data));
    if (type == IFLA_CARRIER) f.carrier = as<uint8_t>(data) != 0;
    if (type == IFLA_CARRIER_CHANGES) f.carrier_changes = as<uint32_t>(data);
    if (type == IFLA_STATS64) read_statistics(data, f);
    if (type == IFLA_ADDRESS) f.mac = hardware_address(data);
    if (type == IFLA_MASTER) masters.emplace_back(link.index, as<uint32_t>(data));
    if (type == IFLA_LINKINFO)
      each_attribute(reinterpret_cast<const rtattr*>(data.data()), data.size(), [&](int inner, std::string_view word) {
        if (inner == IFLA_INFO_KIND) link.link_kind = text_of(word);
      });
  });
  return link;
}

// getifaddrs' own order and names; IPv6 zones are left out.
std::vector<AddressLine> kernel_addresses(const std::vector<Link>& links) {
  std::vector<AddressLine> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (ifaddrs* a = list; a; a = a->ifa_next) {
    if (!a->ifa_addr || (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6)) continue;
    AddressLine line;
    line.address.v6 = a->ifa_addr->sa_family == AF_INET6;
    char text[INET6_ADDRSTRLEN] = "";
    auto bytes_of = [&](const sockaddr* s) -> const unsigned char* {
      if (line.address.v6) return reinterpret_cast<const sockaddr_in6*>(s)->sin6_addr.s6_addr;
      return reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(s)->sin_addr);
    };
    ::inet_ntop(a->ifa_addr->sa_family, bytes_of(a->ifa_addr), text, sizeof(text));
    line.address.address = text;
    if (a->ifa_netmask)
      for (int i = 0; i < (line.address.v6 ? 16 : 4); ++i) line.address.prefix += __builtin_popcount(bytes_of(a->ifa_netmask)[i]);
    std::string name = a->ifa_name;
    line.interface = name;
    bool known = std::any_of(links.begin(), links.end(), [&](const Link& l) { return l.facts.name == name; });
    if (!known) line.interface = name.substr(0, name.rfind(':')), line.address.label = name;
    out.push_back(std::move(line));
  }
  ::freeifaddrs(list);
  return out;
}

std::vector<BondSlave> slaves_of(const std::string& root, const Interface& bond, const std::vector<Link>& links) {
  base::Result<std::string> text = os::read_file(root + "/proc/net/bonding/" + bond.name, 256 << 10);
  if (text.ok()) return parse_bonding(*text);
  std::vector<BondSlave> slaves;
  for (const Link& l : links)
    if (l.facts.master == bond.name) slaves.push_back({l.facts.name, l.facts.running, l.facts.speed_mbps});
  return slaves;
}

}  // namespace

std::string kind_of(const Link& link) {
  const std::string& name = link.facts.name;
  const std::string& kind = link.link_kind;
  if (link.facts.loopback || link.hardware == ARPHRD_LOOPBACK) return "loopback";
  if (link.hardware == ARPHRD_INFINIBAND) return "infiniband";
  if (kind == "bond" || kind == "team") return "bond";
  if (begins(name, {"docker", "br-"}) && (kind == "bridge" || kind.empty())) return "docker";
  if (kind == "bridge") return "bridge";
  if (kind == "vlan") return "vlan";
  if (kind == "wireguard" || begins(name, {"tailscale", "wg", "zt", "ppp", "ipsec", "nebula"})) return "vpn";
  if (kind == "tun") return begins(name, {"tun"}) ? "vpn" : "virtual";
  if (kind == "veth") return "veth";
  if (link.facts.driver == "virtio_net") return "virtio";
  if (kind.empty() && (!link.facts.pci.empty() || !link.facts.driver.empty()) && link.facts.driver != "tun") return "physical";
  return "virtual";
}

std::vector<Link> kernel_links() {
  std::vector<Link> links;
  std::vector<std::pair<int64_t, int64_t>> masters;
  Netlink netlink;
  if (!netlink.ok()) return links;
  struct {
    nlmsghdr header{};
    ifinfomsg body{};
  } request;
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  netlink.ask(request.header, [&](const nlmsghdr& message) {
    if (message.nlmsg_type == RTM_NEWLINK && links.size() < kMostLinks) links.push_back(link_of(message, masters));
  });
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.index < b.index; });
  os::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (Link& link : links) {
    ask_driver(socket.get(), link);
    for (const auto& [slave, master] : masters)
      for (const Link& other : links)
        if (slave == link.index && other.index == master) link.facts.master = other.facts.name;
  }
  return links;
}

std::vector<Interface> read_interfaces(const std::string& root) {
  std::vector<Link> links = root.empty() ? kernel_links() : tree_links(root);
  std::vector<AddressLine> addresses;
  if (root.empty()) {
    addresses = kernel_addresses(links);
  } else if (base::Result<std::string> text = os::read_file(root + "/ip-address", 1 << 20); text.ok()) {
    addresses = parse_ip_addresses(*text);
  }
  std::vector<Interface> all;
  auto take = [&](const Link& link) {
    Interface i = link.facts;
    i.kind = kind_of(link);
    if (i.kind == "bond") i.slaves = slaves_of(root, i, links);
    for (const AddressLine& line : addresses)
      if (line.interface == i.name) i.addresses.push_back(line.address);
    all.push_back(std::move(i));
  };
  std::vector<std::string> order = interface_order(addresses);
  for (const std::string& name : order)
    for (const Link& link : links)
      if (link.facts.name == name) take(link);
  for (const Link& link : links)
    if (std::find(order.begin(), order.end(), link.facts.name) == order.end()) take(link);
  return all;
}

std::vector<std::string> interface_order(const std::vector<AddressLine>& addresses) {
  std::vector<std::string> order, second;
  for (const AddressLine& line : addresses) {
    std::vector<std::string>& list = line.address.v6 ? second : order;
    if (std::find(list.begin(), list.end(), line.interface) == list.end()) list.push_back(line.interface);
  }
  auto before = order.end();
  for (auto name = second.rbegin(); name != second.rend(); ++name) {  // each goes before the next one that has both
    auto known = std::find(order.begin(), order.end(), *name);
    before = known != order.end() ? known : order.insert(before, *name);
  }
  return order;
}

}  // namespace phalanx::machine
