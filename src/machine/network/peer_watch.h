// How much of what this host sends over TCP is lost on the way, by the host it is sent to: the kernel's counters of every established
// connection (struct tcp_info over sock_diag(7)), whichever program has it, without looking into a process.
//
// A look costs some microseconds for each connection; on a host with many it is made so rarely that it takes at most a thousandth of a
// core.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "os/clock.h"

namespace phalanx::machine {

// Of one connection, since it began.
struct ConnectionCounts {
  std::array<uint32_t, 4> peer{};  // as inet_diag has it
  bool v6 = false;
  uint64_t sent = 0, resent = 0;  // segments with data; sent again, without those that the peer says it had received already
  bool recovering = false;        // what was sent is overdue: it waits for an acknowledgement or for a retransmission
};

struct PeerTraffic {
  std::string address;
  uint32_t sent = 0, resent = 0, looks = 0, recovering = 0;
};

// What happened between looks. Pure.
class PeerTally {
 public:
  void look(const std::map<uint64_t, ConnectionCounts>& connections);  // by cookie
  // Since the last call; the busiest, at most `most`.
  std::vector<PeerTraffic> take(size_t most);
  bool lossy() const { return lossy_; }  // something was lost between the last two looks, or is being recovered

 private:
  std::map<uint64_t, ConnectionCounts> before_;
  std::map<std::string, PeerTraffic> peers_;
  bool first_ = true, lossy_ = false;
};

class PeerWatch {
 public:
  void look(os::Mono now);  // if one is due
  bool lossy() const { return tally_.lossy(); }
  std::vector<PeerTraffic> take(size_t most) { return tally_.take(most); }

 private:
  PeerTally tally_;
  os::Mono not_before_;
};

}  // namespace phalanx::machine
