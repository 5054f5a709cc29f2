// Ranks as processes of their own, which can be killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ranks.h"

namespace phalanx::processes {

inline constexpr int kThrew = 7;

// `world` processes, each with its rank's group. They end with 0, or with kThrew when body throws.
class Processes {
 public:
  using Body = std::function<void(engine::comm::Group&)>;
  // before: called in each process first.
  Processes(int world, const engine::comm::GroupOptions& options, const Body& body, const std::function<void()>& before = [] {});
  ~Processes();
  void kill_rank(int rank);
  // The wait status of a rank, within the limit; -1: it still runs.
  int end_of(int rank, std::chrono::milliseconds limit);
  void wait_for_start(int world);
  std::string began(int rank);   // describe() of its group
  std::string said(int rank);    // what the exception said
  std::string flight(int rank);  // the ring of its operations, which it is asked for through its pipe

 private:
  int be(int rank, int world, engine::comm::GroupOptions options, const Body& body, const std::function<void()>& before);
  void leave_note(const char* name, int rank, const std::string& text);
  std::string path(const char* name, int rank);
  ranks::TempFolder folder_;
  std::vector<pid_t> pids_;
};

}  // namespace phalanx::processes
