// How busy the ranks of this host are: every 2.5 seconds their processes are looked at and the launcher is told. Costs one small file of
// /proc per process; measured for 8 ranks: docs/guides/hangs.md.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/ranks/ranks.h"
#include "machine/network/peer_watch.h"
#include "machine/ranks/use.h"
#include "os/loop.h"
#include "wire/sample_messages.h"

namespace phalanx::agent {

class UsageWatch {
 public:
  // ranks: those that live. tell: called from the loop.
  UsageWatch(os::Loop& loop, std::function<std::vector<Ranks::Living>()> ranks, std::function<void(const wire::Pulse&)> tell)
      : loop_(loop), ranks_(std::move(ranks)), tell_(std::move(tell)) {}
  ~UsageWatch();
  UsageWatch(const UsageWatch&) = delete;
  UsageWatch& operator=(const UsageWatch&) = delete;

  void start();
  void stop();

 private:
  struct Process {
    uint64_t start_ticks = 0;  // another start is another process
    int64_t cpu_ms = 0, major_faults = 0;
  };
  struct Seen {
    std::vector<pid_t> family;           // the rank's first, and what it has started
    std::map<pid_t, Process> processes;  // of the family, at the last look
    std::string throttle_file;
    int64_t throttled_ms = 0;
    std::optional<int64_t> delayed_ms;  // of its first thread, since it began
    wire::RankPulse window;
  };
  void look();
  void find_families(const std::vector<Ranks::Living>& living);
  void look_at_peers();
  void look_at(const Ranks::Living& rank, Seen& seen);

  os::Loop& loop_;
  std::function<std::vector<Ranks::Living>()> ranks_;
  std::function<void(const wire::Pulse&)> tell_;
  std::map<uint32_t, Seen> seen_;
  machine::PeerWatch peers_;
  machine::CpuTimes cpus_;
  uint32_t stolen_permille_ = 0;
  os::TimerId timer_ = 0, peers_timer_ = 0;
  os::Mono told_;
  int looks_ = 0;
};

}  // namespace phalanx::agent
