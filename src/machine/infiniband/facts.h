// InfiniBand and RoCE devices, from /sys/class/infiniband.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"

namespace phalanx::machine {

struct IbGid {
  int64_t index = 0;
  std::string gid;
  std::string type;       // "IB/RoCE v1", "RoCE v2"
  std::string interface;  // net device
};
PHALANX_FIELDS(IbGid, index, gid, type, interface);

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
PHALANX_FIELDS(IbPort, port, state, phys_state, link_layer, rate_gbps, rate, lid, sm_lid, gids, pkey, counters);

struct IbDevice {
  std::string name;  // "mlx5_0"
  std::string pci, firmware, board;
  int64_t numa_node = -1;
  std::vector<std::string> net_interfaces;
  std::vector<IbPort> ports;
};
PHALANX_FIELDS(IbDevice, name, pci, firmware, board, numa_node, net_interfaces, ports);

struct InfinibandFacts {
  std::vector<IbDevice> devices;
  bool uverbs = false;               // /dev/infiniband/uverbs*
  std::string libibverbs;            // path found where the loader would look, empty: none
  bool peermem = false;              // nvidia_peermem or nv_peer_mem is loaded
  std::vector<std::string> modules;  // mlx5_core, mlx5_ib, ib_uverbs …
};
PHALANX_FIELDS(InfinibandFacts, devices, uverbs, libibverbs, peermem, modules);

}  // namespace phalanx::machine
