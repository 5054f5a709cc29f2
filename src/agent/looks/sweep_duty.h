// The sweep of this machine, for `phalanx stop`: waits until no process of a run is left, kills what does not end, and says so
// (wire/control_messages.h). /proc is read in a child, for reading it may hang: the loop never waits.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/looks/forked_look.h"
#include "machine/ranks/run_processes.h"
#include "os/loop.h"
#include "wire/control_messages.h"

namespace phalanx::agent {

class SweepDuty {
 public:
  static constexpr os::milliseconds kLook{100};       // between two looks
  static constexpr os::milliseconds kBudget{2000};    // of one look
  static constexpr os::milliseconds kKillTime{3000};  // for the kernel to end what was killed
  static constexpr int64_t kLongestPatienceMs = 60'000;

  SweepDuty(os::Loop& loop, std::function<void(const wire::Swept&)> done)
      : loop_(loop), done_(std::move(done)), look_(loop, "phalanx-sweep", "the scan of all processes") {}
  ~SweepDuty();
  SweepDuty(const SweepDuty&) = delete;
  SweepDuty& operator=(const SweepDuty&) = delete;

  // done is called once per start().
  void start(const wire::Sweep& sweep);
  // Of the child that looks; 0: there was none.
  pid_t group() const { return look_.group(); }

 private:
  void look();
  void looked(const machine::RunLook& look);
  void finish(const machine::RunLook& look);

  os::Loop& loop_;
  std::function<void(const wire::Swept&)> done_;
  ForkedLook look_;
  std::string run_id_;
  os::Mono kill_at_;
  os::TimerId timer_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::string> seen_, killed_;  // (pid, start) → command
};

}  // namespace phalanx::agent
