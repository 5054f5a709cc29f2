// InfiniBand and RoCE devices of a machine, from /sys/class/infiniband; and what a program needs to use them: device nodes, libibverbs,
// modules. Reads only small files; a device that is taken away while we look leaves gaps, not a fault.
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "machine/infiniband/text.h"
#include "machine/probe.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostDevices = 64, kMostPorts = 8, kMostGids = 64, kMostEntries = 4096;

std::string text_of(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 4096);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

// Sorted as a person would: mlx5_2 before mlx5_10.
std::vector<std::string> numbered_names_in(const std::string& folder) {
  std::vector<std::string> names = names_in(folder, kMostEntries);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  return names;
}

std::string target_of(const std::string& path) {
  char text[4096];
  ssize_t got = ::readlink(path.c_str(), text, sizeof(text));
  std::string target(text, got > 0 ? static_cast<size_t>(got) : 0);
  return target.substr(target.rfind('/') + 1);
}

std::vector<IbGid> gids_of(const std::string& port) {
  std::vector<IbGid> gids;
  for (const std::string& index : numbered_names_in(port + "/gids")) {
    base::Result<int64_t> number = base::parse_int(index, 0, 65535);
    std::string gid = text_of(port + "/gids/" + index);
    if (!number.ok() || gids.size() == kMostGids || !is_gid(gid) || is_zero_gid(gid)) continue;
    gids.push_back({*number, gid, text_of(port + "/gid_attrs/types/" + index), text_of(port + "/gid_attrs/ndevs/" + index)});
  }
  return gids;
}

void read_counters(const std::string& folder, std::map<std::string, int64_t>& counters) {
  for (const std::string& name : numbered_names_in(folder)) {
    if (!tells_of_errors(name)) continue;
    base::Result<int64_t> value = base::parse_int(text_of(folder + "/" + name), 0, INT64_MAX);
    if (value.ok()) counters[name] = *value;
  }
}

IbPort port_of(const std::string& folder, int64_t number) {
  IbPort p;
  p.port = number;
  p.state = after_colon(text_of(folder + "/state"));
  p.phys_state = after_colon(text_of(folder + "/phys_state"));
  p.link_layer = text_of(folder + "/link_layer");
  p.rate = text_of(folder + "/rate");
  p.rate_gbps = rate_gbps(p.rate);
  p.lid = hexadecimal(text_of(folder + "/lid"));
  p.sm_lid = hexadecimal(text_of(folder + "/sm_lid"));
  p.pkey = text_of(folder + "/pkeys/0");
  p.gids = gids_of(folder);
  read_counters(folder + "/counters", p.counters);
  read_counters(folder + "/hw_counters", p.counters);
  return p;
}

IbDevice device_of(const std::string& root, const std::string& name) {
  std::string folder = root + "/sys/class/infiniband/" + name;
  IbDevice d;
  d.name = name;
  d.firmware = text_of(folder + "/fw_ver");
  d.board = text_of(folder + "/board_id");
  std::string pci = target_of(folder + "/device");
  if (pci.size() == 12 && pci[4] == ':') d.pci = pci;
  base::Result<int64_t> node = base::parse_int(text_of(folder + "/device/numa_node"), -1, 4096);
  if (node.ok()) d.numa_node = *node;
  d.net_interfaces = numbered_names_in(folder + "/device/net");
  for (const std::string& port : numbered_names_in(folder + "/ports")) {
    base::Result<int64_t> number = base::parse_int(port, 1, 255);
    if (number.ok() && d.ports.size() < kMostPorts) d.ports.push_back(port_of(folder + "/ports/" + port, *number));
  }
  return d;
}

// Where the loader of a program would look, without asking it: the folders of every distribution.
std::string find_libibverbs(const std::string& root) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/", "/lib/x86_64-linux-gnu/", "/usr/lib64/", "/lib64/", "/usr/lib/aarch64-linux-gnu/",
        "/lib/aarch64-linux-gnu/", "/usr/lib/", "/usr/local/lib/", "/opt/mellanox/lib64/"})
    if (os::exists(root + folder + "libibverbs.so.1")) return std::string(folder) + "libibverbs.so.1";
  return "";
}

}  // namespace

InfinibandFacts probe_infiniband(const ProbeRequest& request) {
  const std::string& root = request.root;
  InfinibandFacts facts;
  for (const std::string& name : numbered_names_in(root + "/sys/class/infiniband"))
    if (facts.devices.size() < kMostDevices) facts.devices.push_back(device_of(root, name));
  for (const std::string& name : numbered_names_in(root + "/dev/infiniband"))
    if (name.substr(0, 6) == "uverbs") facts.uverbs = true;
  facts.libibverbs = find_libibverbs(root);
  for (const char* module : {"mlx4_core", "mlx4_ib", "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm",
                             "rdma_rxe", "siw", "irdma", "bnxt_re", "efa", "hfi1", "nvidia_peermem", "nv_peer_mem"})
    if (os::is_folder(root + "/sys/module/" + module)) facts.modules.push_back(module);
  facts.peermem = os::exists(root + "/sys/module/nvidia_peermem") || os::exists(root + "/sys/kernel/mm/memory_peers/nv_mem/version") ||
                  os::exists(root + "/sys/kernel/mm/memory_peers/nv_mem_nc/version");
  return facts;
}

}  // namespace phalanx::machine
