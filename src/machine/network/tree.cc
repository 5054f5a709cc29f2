// Links of a recorded or built tree: its /sys/class/net.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "machine/network/links.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

std::string line_of(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 4096);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

int64_t number_of(const std::string& path, int64_t least = 0) {
  base::Result<int64_t> value = base::parse_int(line_of(path), least, INT64_MAX);
  return value.ok() ? *value : 0;
}

// The last part of where a link points.
std::string target_of(const std::string& path) {
  char text[4096];
  ssize_t got = ::readlink(path.c_str(), text, sizeof(text));
  if (got <= 0) return "";
  std::string target(text, static_cast<size_t>(got));
  return target.substr(target.rfind('/') + 1);
}

std::string device_type(const std::string& uevent) {
  base::Result<std::string> text = os::read_file(uevent, 4096);
  if (!text.ok()) return "";
  for (std::string_view line : base::split_lines(*text))
    if (line.substr(0, 8) == "DEVTYPE=") return std::string(line.substr(8, 64));
  return "";
}

Link link_in(const std::string& folder, const std::string& name) {
  Link link;
  Interface& f = link.facts;
  f.name = name;
  link.index = number_of(folder + "/ifindex");
  link.hardware = number_of(folder + "/type");
  link.link_kind = device_type(folder + "/uevent");
  if (link.link_kind.empty() && os::is_folder(folder + "/bridge")) link.link_kind = "bridge";
  if (link.link_kind.empty() && os::is_folder(folder + "/bonding")) link.link_kind = "bond";
  if (link.link_kind.empty() && os::exists(folder + "/tun_flags")) link.link_kind = "tun";
  std::string flags = line_of(folder + "/flags");
  unsigned long bits = flags.substr(0, 2) == "0x" ? std::strtoul(flags.c_str(), nullptr, 16) : 0;
  f.up = bits & 0x1;
  f.loopback = bits & 0x8;
  f.state = line_of(folder + "/operstate");
  f.running = f.up && (f.state == "up" || f.state == "unknown");  // as dev_get_flags computes it; the file has not that bit
  f.carrier = line_of(folder + "/carrier") == "1";
  f.carrier_changes = number_of(folder + "/carrier_changes");
  f.mtu = number_of(folder + "/mtu");
  f.speed_mbps = std::max<int64_t>(0, number_of(folder + "/speed", -1));
  f.mac = line_of(folder + "/address").substr(0, 64);
  f.master = target_of(folder + "/master");
  f.driver = target_of(folder + "/device/driver");
  std::string device = target_of(folder + "/device");
  if (device.size() == 12 && device[4] == ':') f.pci = device;
  std::string node = line_of(folder + "/device/numa_node");
  f.numa_node = node.empty() ? -1 : number_of(folder + "/device/numa_node", -1);
  f.rx_packets = number_of(folder + "/statistics/rx_packets");
  f.tx_packets = number_of(folder + "/statistics/tx_packets");
  f.rx_errors = number_of(folder + "/statistics/rx_errors");
  f.tx_errors = number_of(folder + "/statistics/tx_errors");
  f.rx_dropped = number_of(folder + "/statistics/rx_dropped");
  return link;
}

}  // namespace

std::vector<Link> tree_links(const std::string& root) {
  constexpr size_t kMost = 1024;
  std::vector<Link> links;
  std::string folder = root + "/sys/class/net";
  DIR* entries = ::opendir(folder.c_str());
  if (!entries) return links;
  while (dirent* entry = ::readdir(entries)) {
    std::string name = entry->d_name;
    if (name[0] == '.' || links.size() == kMost || !os::is_folder(folder + "/" + name)) continue;
    links.push_back(link_in(folder + "/" + name, name));
  }
  ::closedir(entries);
  std::sort(links.begin(), links.end(),
            [](const Link& a, const Link& b) { return std::tie(a.index, a.facts.name) < std::tie(b.index, b.facts.name); });
  return links;
}

}  // namespace phalanx::machine
