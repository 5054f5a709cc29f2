// InfiniBand and RoCE devices, from /sys/class/infiniband.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace phalanx::machine {

struct IbGid {
  int64_t index = 0;
  std::string gid;
  std::string type;       // "IB/RoCE v1", "RoCE v2"
  std::string interface;  // net device
};
template <typename V>
void fields(V& v, IbGid& f) {
  v("index", f.index);
  v("gid", f.gid);
  v("type", f.type);
  v("interface", f.interface);
}

struct IbPort {
  int64_t port = 0;
  std::string state;       // "ACTIVE", "INIT", "DOWN", "ARMED"
  std::string phys_state;  // "LinkUp", "Polling", "Disabled"
  std::string link_layer;  // "InfiniBand", "Ethernet"
  double rate_gbps = 0;
  std::string rate;  // "200 Gb/sec (4X HDR)"
  int64_t lid = 0, sm_lid = 0;
  std::vector<IbGid> gids;                  // that are not zero
  std::string pkey;                         // pkeys/0
  std::map<std::string, int64_t> counters;  // counters/* and hw_counters/* that tell of errors
};
template <typename V>
void fields(V& v, IbPort& f) {
  v("port", f.port);
  v("state", f.state);
  v("phys_state", f.phys_state);
  v("link_layer", f.link_layer);
  v("rate_gbps", f.rate_gbps);
  v("rate", f.rate);
  v("lid", f.lid);
  v("sm_lid", f.sm_lid);
  v("gids", f.gids);
  v("pkey", f.pkey);
  v("counters", f.counters);
}

struct IbDevice {
  std::string name;  // "mlx5_0"
  std::string pci, firmware, board;
  int64_t numa_node = -1;
  std::vector<std::string> net_interfaces;
  std::vector<IbPort> ports;
};
template <typename V>
void fields(V& v, IbDevice& f) {
  v("name", f.name);
  v("pci", f.pci);
  v("firmware", f.firmware);
  v("board", f.board);
  v("numa_node", f.numa_node);
  v("net_interfaces", f.net_interfaces);
  v("ports", f.ports);
}

struct InfinibandFacts {
  std::vector<IbDevice> devices;
  bool uverbs = false;               // /dev/infiniband/uverbs*
  std::string libibverbs;            // path found where the loader would look, empty: none
  bool peermem = false;              // nvidia_peermem or nv_peer_mem is loaded
  std::vector<std::string> modules;  // mlx5_core, mlx5_ib, ib_uverbs …
};
template <typename V>
void fields(V& v, InfinibandFacts& f) {
  v("devices", f.devices);
  v("uverbs", f.uverbs);
  v("libibverbs", f.libibverbs);
  v("peermem", f.peermem);
  v("modules", f.modules);
}

}  // namespace phalanx::machine
