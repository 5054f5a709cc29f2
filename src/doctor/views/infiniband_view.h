// InfiniBand and RoCE ports as NCCL would use them. NCCL takes every port that is ACTIVE and passes NCCL_IB_HCA, and says nothing of
// the others (src/transport/net_ib.cc; from 2.29 src/transport/net_ib/).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

struct IbPlace {
  size_t host = 0;
  const machine::IbDevice* device = nullptr;
  const machine::IbPort* port = nullptr;
  std::string name() const;  // "mlx5_0" or, with several ports, "mlx5_0:2"
};
std::vector<IbPlace> ib_ports(const Situation& s);                    // of all hosts
std::vector<IbPlace> nccl_ib_ports(const Situation& s, size_t host);  // that NCCL would use there
bool ib_switched_off(const Situation& s, size_t host);                // NCCL_IB_DISABLE, NCCL_NET=Socket

// For each device and port that several hosts have: what `value` says of it, and the hosts where that is not the usual.
struct OddPort {
  IbPlace place;
  std::string value, usual;
  std::vector<size_t> others;
};
std::vector<OddPort> odd_ports(const Situation& s, const std::function<std::string(const IbPlace&)>& value);

}  // namespace phalanx::doctor
