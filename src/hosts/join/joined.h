// The transport of nodes that have joined by themselves (gather.h): nothing is logged in to, the node itself runs the agent.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "hosts/connect/transport.h"
#include "hosts/join/gather.h"

namespace phalanx::hosts {

// The nodes of a run, until each has been told how it ended.
class JoinedNodes {
 public:
  explicit JoinedNodes(std::vector<JoinedNode> nodes);
  // Tells all of them; once.
  void tell_all(const JoinVerdict& verdict);
  // The descriptors of the relay (relay_to_node.h); empty: this node was given away before.
  std::vector<InheritedFd> descriptors(uint32_t node_rank);
  const std::vector<JoinedNode>& nodes() const { return nodes_; }

 private:
  std::vector<JoinedNode> nodes_;
  std::map<uint32_t, os::Fd> verdicts_;  // to the relays
};

class JoinedTransport : public Transport {
 public:
  explicit JoinedTransport(JoinedNodes* nodes) : nodes_(nodes) {}
  Launch launch(const Target& target, int attempt) const override;
  base::Error explain(const Target& target, const Death& death) const override;
  bool may_retry(const Death&) const override { return false; }
  std::string try_by_hand(const Target& target) const override;

 private:
  JoinedNodes* nodes_;
};

}  // namespace phalanx::hosts
