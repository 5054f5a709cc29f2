#include "machine/network/peer_watch.h"

#include <algorithm>
#include <set>

#include "machine/network/tcp_sockets.h"

namespace phalanx::machine {
namespace {

constexpr int kCost = 1000,
              kLossyCost = 100;  // a look takes at most this part of the time; of a network that loses packets it is worth more

}  // namespace

void PeerTally::look(const std::map<uint64_t, ConnectionCounts>& connections) {
  std::set<std::string> looked, recovering;
  lossy_ = false;
  for (const auto& [cookie, now] : connections) {
    const std::string address = connection_address(now);
    auto before = before_.find(cookie);
    const ConnectionCounts from = before != before_.end() ? before->second : first_ ? now : ConnectionCounts{};
    PeerTraffic& peer = peers_[address];
    peer.address = address;
    peer.sent += static_cast<uint32_t>(now.sent - std::min(now.sent, from.sent));
    const auto resent = static_cast<uint32_t>(now.resent - std::min(now.resent, from.resent));
    peer.resent += resent;
    looked.insert(address);
    if (now.recovering) recovering.insert(address);
    lossy_ = lossy_ || resent > 0 || now.recovering;
  }
  for (const std::string& address : looked) ++peers_[address].looks;
  for (const std::string& address : recovering) ++peers_[address].recovering;
  before_ = connections;
  first_ = false;
}

std::vector<PeerTraffic> PeerTally::take(size_t most) {
  std::vector<PeerTraffic> all;
  for (auto& [address, peer] : peers_)
    if (peer.sent > 0) all.push_back(std::move(peer));
  peers_.clear();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sent > b.sent; });
  if (all.size() > most) all.resize(most);
  return all;
}

void PeerWatch::look(os::Mono now) {
  if (now < not_before_) return;
  tally_.look(connection_counts());
  not_before_ = now + (tally_.lossy() ? kLossyCost : kCost) * (os::mono_now() - now);
}

}  // namespace phalanx::machine
