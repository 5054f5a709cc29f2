// The PCI side of the GPUs, from sysfs: also right where the driver is not loaded or a GPU answers no more.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>

#include "base/text.h"
#include "machine/gpu/sources.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostEntries = 8192;
constexpr size_t kMostBridges = 16;

std::string word(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 4096);
  return text.ok() ? std::string(base::trim(*text)) : "";
}
int64_t count(const std::string& path, int64_t unknown) {
  base::Result<int64_t> value = base::parse_int(word(path), -1, 1 << 20);
  return value.ok() ? *value : unknown;
}
std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string link_name(const std::string& path) {
  char buffer[PATH_MAX];
  ssize_t n = ::readlink(path.c_str(), buffer, sizeof(buffer) - 1);
  return n > 0 ? last_part(std::string(buffer, static_cast<size_t>(n))) : "";
}
std::string resolved(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? buffer : "";
}

bool is_bus_address(std::string_view name) {  // "0000:3b:00.0", domains of virtual roots are longer
  return name.size() >= 12 && name[name.size() - 2] == '.' && name[name.size() - 5] == ':' && name[name.size() - 8] == ':';
}

std::string config_space(const std::string& device) {
  base::Result<std::string> bytes = os::read_file(device + "/config", 8192);
  return bytes.ok() ? *bytes : "";
}
uint32_t at(const std::string& bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | (offset + i < bytes.size() ? static_cast<unsigned char>(bytes[offset + i]) : 0);
  return value;
}

// Access Control Services: extended capability 13 of the configuration space, of which only root can read more than 64 bytes.
// Control register, PCI Express base specification 7.7.11: source validation 1, request redirect 4, completion redirect 8.
bool acs_redirects(const std::string& device) {
  std::string bytes = config_space(device);
  size_t offset = 256;
  for (int hops = 0; hops < 64 && offset >= 256 && offset + 8 <= bytes.size(); ++hops) {
    uint32_t header = at(bytes, offset, 4);
    if ((header & 0xffff) == 13) return (at(bytes, offset + 6, 2) & (1 | 4 | 8)) != 0;
    offset = header >> 20;
  }
  return false;
}

PcieLink link_of(const std::string& device, bool bridge) {
  PcieLink link;
  link.address = last_part(device);
  link.speed = word(device + "/current_link_speed");
  link.max_speed = word(device + "/max_link_speed");
  link.width = std::max<int64_t>(0, count(device + "/current_link_width", 0));
  link.max_width = std::max<int64_t>(0, count(device + "/max_link_width", 0));
  if (link.max_width > 32) link.max_width = 0;  // 255: sysfs's word for "not known"
  link.acs_redirects = bridge && acs_redirects(device);
  return link;
}

// The device first, then the bridges above it: each is the folder that holds the one before.
std::vector<PcieLink> links_above(const std::string& device) {
  std::vector<PcieLink> links;
  for (std::string path = device; is_bus_address(last_part(path)) && links.size() < kMostBridges; path = path.substr(0, path.rfind('/')))
    links.push_back(link_of(path, !links.empty()));
  return links;
}

// A translating IOMMU sends what GPUs write to each other through the root complex. "identity" is pass-through.
bool translated(const std::string& device) {
  std::string type = word(device + "/iommu_group/type");
  return type == "DMA" || type == "DMA-FQ";
}

void look_at_gpu(const std::string& folder, const std::string& address, GpuFacts& facts) {
  if (link_name(folder + "/driver") == "vfio-pci") return;
  ++facts.pci_devices;
  std::string config = config_space(folder);
  if (config.size() >= 2 && at(config, 0, 2) == 0xffff) facts.lost.push_back(address);
  facts.iommu_translates = facts.iommu_translates || translated(folder);
  for (Gpu& g : facts.devices) {
    if (g.pci != address) continue;
    std::string device = resolved(folder);
    std::vector<PcieLink> links = links_above(device);
    if (!links.empty() && (links[0].width > 0 || g.pcie.empty())) g.pcie = std::move(links);
    if (g.numa_node < 0) g.numa_node = count(folder + "/numa_node", -1);
    g.local_cpus = word(folder + "/local_cpulist");
  }
}

// The bridges from the root complex down to the device, "pci0000:3a" first.
std::vector<std::string> chain(const std::string& root, const Gpu& g) {
  std::string path = resolved(root + "/sys/bus/pci/devices/" + g.pci);
  std::vector<std::string> parts;
  for (; is_bus_address(last_part(path)); path = path.substr(0, path.rfind('/'))) parts.push_back(last_part(path));
  if (parts.empty()) return parts;
  parts.push_back(last_part(path));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// In nvidia-smi's words. Below one switch each GPU has a downstream port of its own: two steps down from what they share.
std::string pci_path(const std::string& root, const Gpu& a, const Gpu& b) {
  std::vector<std::string> x = chain(root, a), y = chain(root, b);
  if (x.empty() || y.empty()) return "";
  if (x[0] != y[0]) return a.numa_node >= 0 && a.numa_node == b.numa_node ? "NODE" : "SYS";
  size_t shared = 0;
  while (shared < x.size() && shared < y.size() && x[shared] == y[shared]) ++shared;
  if (shared == 1) return "PHB";
  return x.size() - shared <= 2 && y.size() - shared <= 2 ? "PIX" : "PXB";
}

size_t links_between(const Gpu& a, const Gpu& b) {
  size_t direct = 0, switched_a = 0, switched_b = 0;
  for (const NvLink& link : a.nvlinks) {
    if (link.active && !link.to_switch && link.remote == b.pci) ++direct;
    if (link.active && link.to_switch) ++switched_a;
  }
  for (const NvLink& link : b.nvlinks)
    if (link.active && link.to_switch) ++switched_b;
  return direct > 0 ? direct : std::min(switched_a, switched_b);
}

}  // namespace

void read_pci(const std::string& root, GpuFacts& facts) {
  const std::string devices = root + "/sys/bus/pci/devices/";
  for (const std::string& address : names_in(devices, kMostEntries)) {
    std::string folder = devices + address;
    if (word(folder + "/vendor") != "0x10de") continue;
    std::string kind = word(folder + "/class").substr(0, 6);
    if (kind == "0x0300" || kind == "0x0302") look_at_gpu(folder, address, facts);
    if (kind == "0x0680") facts.nvswitch = true;
  }
  if (!names_in(root + "/proc/driver/nvidia-nvswitch/devices").empty() || os::exists(root + "/dev/nvidia-nvswitch0")) facts.nvswitch = true;
  base::Result<std::string> modules = os::read_file(root + "/proc/modules", 1 << 20);
  if (!modules.ok()) return;
  for (std::string_view line : base::split_lines(*modules)) {
    std::string_view name = line.substr(0, line.find(' '));
    if (name.starts_with("nvidia") || name == "nouveau" || name == "nv_peer_mem" || name == "gdrdrv") facts.modules.emplace_back(name);
    if (facts.modules.size() >= 64) break;
  }
}

void find_paths(const std::string& root, GpuFacts& facts) {
  std::map<int64_t, const Gpu*> gpus;
  for (const Gpu& g : facts.devices) gpus[g.index] = &g;
  for (auto a = gpus.begin(); a != gpus.end(); ++a) {
    for (auto b = std::next(a); b != gpus.end(); ++b) {
      auto pair =
          std::find_if(facts.pairs.begin(), facts.pairs.end(), [&](const GpuPair& p) { return p.a == a->first && p.b == b->first; });
      if (pair == facts.pairs.end()) pair = facts.pairs.insert(pair, GpuPair{a->first, b->first, "", "", ""});
      size_t links = links_between(*a->second, *b->second);
      if (links > 0) pair->path = "NV" + std::to_string(links);
      else if (pair->path.empty()) pair->path = pci_path(root, *a->second, *b->second);
    }
  }
}

}  // namespace phalanx::machine
