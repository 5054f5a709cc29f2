// What NCCL can use of a host's InfiniBand and RoCE, by the rules of its IB transport: it opens libibverbs.so.1, lists the devices that
// have a uverbs node, and takes every port that is ACTIVE, without a word about the others (NCCL: src/transport/net_ib/init.cc).
#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "machine/infiniband/facts.h"

namespace phalanx::doctor {

struct LivePort {
  const machine::IbDevice* device;
  const machine::IbPort* port;
  bool roce() const { return port->link_layer == "Ethernet"; }
};
std::vector<LivePort> live_ports(const machine::InfinibandFacts& facts);

bool verbs_usable(const machine::InfinibandFacts& facts);
// Why they are not, in a few words: "mlx5_0 port 1 is INIT: no subnet manager has set it up".
Words why_no_verbs(const machine::InfinibandFacts& facts);

// Summed rate of the live ports of one link layer, Gbit/s.
double live_rate(const machine::InfinibandFacts& facts, bool roce);

}  // namespace phalanx::doctor
