// What the agent and its guard say to each other, through two pipes. The agent gives orders: until when the guard has to wait before it
// ends the ranks by itself, and what to remove then. The guard answers each with one byte, so the agent knows that it runs.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"

namespace phalanx::agent {

// One order holds all that is known, and replaces the one before. It is written in one piece (less than PIPE_BUF), by the same program that
// reads it.
struct GuardOrder {
  int64_t end_ns = 0;               // end of the lease, on `clock`
  int clock = 0;                    // CLOCK_BOOTTIME or CLOCK_MONOTONIC
  std::array<char, 512> scratch{};  // the run's scratch folder (agent/scratch.h), ended by a 0; may be empty
  std::array<char, 512> cgroup{};   // that of the ranks (machine/own_cgroup.h), likewise
};

// The agent's end.
class GuardLink {
 public:
  static constexpr os::milliseconds kWake{1500};  // silence after which a stopped guard is told to go on

  // answers: read end, at its end of file the guard is dead. lost: called from the loop, with the reason why the guard guards no more.
  GuardLink(os::Loop& loop, os::Fd orders, os::Fd answers, std::function<void(const std::string& why)> lost);
  ~GuardLink();
  base::Status open();

  void order(const GuardOrder& order);
  // To be called a few times a second. A guard that has not answered for kWake gets a SIGCONT, for someone may have stopped it; one that
  // has not answered for `patience` is lost. told: it was woken, once per silence.
  void check(os::milliseconds patience, const std::function<void(const std::string&)>& told);
  // Before this process ends: the guard is its parent. One that was given up is killed, so that it does not hold the login open; any other
  // is told to go on, in case something has stopped it, so that it sees the end and ends too.
  void end_guard();

 private:
  void read_answers();

  os::Loop& loop_;
  os::Fd orders_, answers_;
  std::function<void(const std::string&)> lost_;
  pid_t guard_;
  os::WatchId watch_ = 0;
  std::optional<os::Mono> waiting_since_;  // for an answer
  bool woken_ = false;
  bool given_up_ = false;
};

}  // namespace phalanx::agent
