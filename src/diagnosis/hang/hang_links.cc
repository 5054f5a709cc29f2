#include "diagnosis/hang/hang_links.h"

#include <algorithm>
#include <map>
#include <set>

namespace phalanx::diagnosis {
namespace {

using machine::SocketSample;

// Retransmissions double their interval, from 0.2 s: two are 0.6 s without an answer, and no path that works needs a third in a row.
constexpr int64_t kManyTries = 3;
constexpr int64_t kManyTriesEarly = 4;  // 3 s, and nothing has moved for 5: told before the threshold, it may not be a moment

// A path that has lost much before and went on each time loses packets of any size; one that is broken now has a few tries behind it.
constexpr int64_t kFewBefore = 16;

// Of a segment: below it a packet fits any path that carries IP at all (RFC 791: 576 bytes).
constexpr int64_t kLargeBytes = 600;

struct End {
  int rank;
  size_t host;
  const SocketSample* socket;
};

int64_t tries(const SocketSample& s) { return std::max(s.retransmits, s.backoff); }
bool stuck(const SocketSample& s, int64_t least) {
  return s.state == "ESTABLISHED" && s.timer == "on" && s.unacked > 0 && tries(s) >= least;
}
bool lossy(const SocketSample& s) { return s.total_retransmits > 2 * tries(s) + kFewBefore; }
bool large(const SocketSample& s) { return s.send_queue / std::max<int64_t>(1, s.unacked) >= kLargeBytes; }
bool shut(const SocketSample& s) { return s.state == "ESTABLISHED" && s.timer == "persist" && s.backoff >= kManyTries && s.send_queue > 0; }
bool unanswered(const SocketSample& s) { return s.state == "SYN_SENT" && s.retransmits >= 1; }

BrokenLink::Kind kind_of_stuck(const SocketSample& s) {
  if (s.answers != "yes") return BrokenLink::Kind::kPath;
  if (lossy(s)) return BrokenLink::Kind::kLossy;
  return large(s) ? BrokenLink::Kind::kLargePackets : BrokenLink::Kind::kPath;
}

int weight(BrokenLink::Kind kind) { return kind == BrokenLink::Kind::kPeerDoesNotRead ? 1 : kind == BrokenLink::Kind::kNoAnswer ? 2 : 3; }

}  // namespace

std::optional<BrokenLink> broken_link(const HangInput& input) {
  std::vector<End> ends;
  std::map<std::pair<std::string, std::string>, End> by_names;
  std::map<std::string, size_t> host_of;  // an address that ranks have sockets on
  for (const RankView& r : input.ranks) {
    if (!r.then) continue;
    for (const SocketSample& s : r.then->sockets) {
      ends.push_back({r.rank, r.host, &s});
      by_names.emplace(std::pair(s.local, s.remote), ends.back());
      if (s.local_address.rfind("127.", 0) != 0) host_of.emplace(s.local_address, r.host);
    }
  }
  std::vector<BrokenLink> broken;
  for (const End& end : ends) {
    const SocketSample& s = *end.socket;
    BrokenLink link;
    if (stuck(s, input.early ? kManyTriesEarly : kManyTries)) {
      link.kind = kind_of_stuck(s);
    } else if (shut(s)) {
      link.kind = BrokenLink::Kind::kPeerDoesNotRead;
    } else if (unanswered(s)) {
      link.kind = BrokenLink::Kind::kNoAnswer;
    } else {
      continue;
    }
    link.from = end.rank;
    link.from_host = end.host;
    link.socket = s;
    auto other = by_names.find({s.remote, s.local});
    if (other != by_names.end() && other->second.rank != end.rank) {
      link.to = other->second.rank;
      link.to_host = other->second.host;
      link.data_arrives = other->second.socket->bytes_received > s.bytes_acked;
    } else if (host_of.count(s.remote_address)) {
      link.to_host = host_of[s.remote_address];
    }
    broken.push_back(std::move(link));
  }
  if (broken.empty()) return std::nullopt;
  std::map<size_t, int> touched;  // by host: how many broken links
  for (const BrokenLink& b : broken) {
    ++touched[b.from_host];
    if (b.to_host && *b.to_host != b.from_host) ++touched[*b.to_host];
  }
  auto score = [&](const BrokenLink& b) {
    return std::tuple(weight(b.kind), b.to_host.has_value(), b.to >= 0, std::max(b.socket.retransmits, b.socket.backoff), -b.from);
  };
  BrokenLink worst = *std::max_element(broken.begin(), broken.end(), [&](const auto& a, const auto& b) { return score(a) < score(b); });
  std::set<int> others;
  for (const BrokenLink& b : broken)
    for (int r : {b.from, b.to})
      if (r >= 0 && r != worst.from && r != worst.to) others.insert(r);
  worst.other_ranks.assign(others.begin(), others.end());
  // One host that every broken link touches, of several pairs, is where to look.
  std::set<std::pair<size_t, size_t>> pairs;
  for (const BrokenLink& b : broken)
    if (b.to_host) pairs.insert(std::minmax(b.from_host, *b.to_host));
  if (pairs.size() > 1)
    for (const auto& [host, count] : touched)
      if (count == static_cast<int>(broken.size())) worst.common_host = host;
  return worst;
}

}  // namespace phalanx::diagnosis
