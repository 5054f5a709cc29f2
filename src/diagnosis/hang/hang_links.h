// Connections between ranks that do not get through, seen from both ends. Pure. TCP's own timers tell: "on" with retransmissions, data that
// nobody acknowledges, is a broken path; "persist", the other side's window shut, is a peer that does not read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/hang/hang.h"

namespace phalanx::diagnosis {

struct BrokenLink {
  enum class Kind { kPath, kLargePackets, kLossy, kPeerDoesNotRead, kNoAnswer } kind = Kind::kPath;
  int from = -1, to = -1;  // ranks; to: -1 where the other end is no rank of this run
  size_t from_host = 0;
  std::optional<size_t> to_host;
  machine::SocketSample socket;       // at `from`
  bool data_arrives = false;          // kPath: what `from` sends arrives, the answers are lost
  std::vector<int> other_ranks;       // with broken links of their own
  std::optional<size_t> common_host;  // every broken link of several ends on it
};

// The worst, or none.
std::optional<BrokenLink> broken_link(const HangInput& input);

}  // namespace phalanx::diagnosis
