// A look at the machine that may hang, on behalf of the agent: one child that runs it and pipes the answer back to the loop, which never
// waits for it.
//
// The child and what it starts are one process group, so that all can be killed at once and told from what ranks left behind: a process
// that hangs in a dead file system cannot be ended and is nobody's leftover.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/loop.h"

namespace phalanx::agent {

class ForkedLook {
 public:
  using Done = std::function<void(base::Result<std::string>)>;
  // name: of the child's process, at most 15 bytes, and in errors: "the probe".
  ForkedLook(os::Loop& loop, std::string process, std::string name) : loop_(loop), process_(std::move(process)), name_(std::move(name)) {}
  ~ForkedLook();
  ForkedLook(const ForkedLook&) = delete;
  ForkedLook& operator=(const ForkedLook&) = delete;

  struct Patience {
    os::milliseconds usual;
    os::milliseconds most{0};  // for a child that still moves, on a busy machine; less than `usual`: no more than that
  };
  // look: runs in the child, may fork and block; at most 15 MiB. done: called once from the loop, at the latest when the patience is over,
  // with an error if there is no answer. A look still under way is killed and not answered. kept: descriptors that stay open in the child.
  void start(std::function<std::string()> look, Patience patience, Done done, const std::vector<int>& kept = {});
  void start(std::function<std::string()> look, os::milliseconds patience, Done done, const std::vector<int>& kept = {}) {
    start(std::move(look), Patience{patience}, std::move(done), kept);
  }
  void kill();  // everything it started; no answer follows
  // The process group of the last look; 0: there was none.
  pid_t group() const { return group_; }

 private:
  base::Status fork_child(const std::function<std::string()>& look, const std::vector<int>& kept);
  void wait_on();
  void late(const std::string& steps);
  void read_more();
  void answer(base::Result<std::string> result);
  void forget();

  os::Loop& loop_;
  std::string process_, name_;
  Done done_;
  pid_t group_ = 0;
  Patience patience_{};
  os::Mono began_;
  os::Fd pipe_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0;
  std::string text_;
};

}  // namespace phalanx::agent
