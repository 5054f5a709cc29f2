// A control group (version 2) that holds one run's ranks and all that they start. A process does not leave it by setsid, a double fork
// or an overwritten environment, and is not lost when its parent dies. So the kernel itself says whether anything is left
// (cgroup.events, "populated") and ends all of it at once (cgroup.kill): neither needs a look at /proc.
//
// There is one only where the group that we are in was delegated to us: systemd's units with Delegate=yes, and namespaces (containers)
// whose root group we own. An ssh session is not delegated, and version 1 has nothing of this; there, processes are found through /proc
// alone (os/family.h, machine/ranks/run_processes.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "os/fd.h"

namespace phalanx::machine {

class OwnCgroup {
 public:
  static constexpr const char* kPrefix = "phalanx-run-";  // of the name of each

  enum class Content {
    kEmpty,
    kPopulated,
    kGone,     // there is no such group, so nothing is in it
    kUnknown,  // not of this user, not one of ours by its name, no control group at all, or it cannot be read
  };

  // Makes the group kPrefix + name below the one this process is in. Empty: it is not delegated, or the kernel has no cgroup.kill (before
  // 5.14). root: as for probe().
  static std::optional<OwnCgroup> create(const std::string& name, const std::string& root = "");

  const std::string& path() const { return path_; }
  int join() const { return procs_.get(); }  // for SpawnSpec::join_cgroup
  bool holds(pid_t pid) const;

  // These work on the path alone, also when its maker is gone. Of a path that is kUnknown they do nothing and return false.
  static Content look(const std::string& path);
  static bool kill(const std::string& path);    // SIGKILL to all that is in it and below, also to what forks meanwhile
  static bool remove(const std::string& path);  // if it is empty
  // Waits until nothing is in it, at most so long.
  static void await_empty(const std::string& path, std::chrono::milliseconds most);
  static std::set<int64_t> processes(const std::string& path);  // in it, not below

 private:
  OwnCgroup(std::string path, os::Fd procs) : path_(std::move(path)), procs_(std::move(procs)) {}
  std::string path_;
  os::Fd procs_;
};

}  // namespace phalanx::machine
