// Runs a program, and everything it starts, so that one system call on files below one folder fails, comes back short or hangs.
//
// The kernel asks this process about each such call (seccomp user notification, seccomp_unotify(2)). So the program is the one that ships,
// statically linked, and no call can be missed because of how it was made. Needs Linux 5.19; no privileges.
//
// Calls are numbered from 0, apart for each process name (/proc/PID/comm): phalanx-logs works beside the launcher, and a number over both
// would mean another call in each run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::storage {

inline constexpr int kNoFault = 0;
inline constexpr int kShort = -1;  // instead of an errno: read and write handle half of the bytes
inline constexpr int kHang = -2;   // the call waits until release(); only SIGKILL and signals without a handler end its process before

struct Call {
  std::string name;  // "renameat2"
  std::string path;
  bool moves_bytes = false;  // kShort makes sense
};

struct Program {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string folder;  // where it starts
  std::string output;  // file that takes its standard output; standard error goes to the same name with ".err"
  std::string watched;
};

struct Fault {
  std::string process;  // name of the process that meets it
  int at = -1;          // number of its call
  int error = kNoFault;
};

// The wait status of a child of this process. nullopt: it has not ended within that time.
std::optional<int> wait_for(pid_t pid, std::chrono::milliseconds most);

class Watch {
 public:
  // "": system calls can be watched here; else why not.
  static std::string unavailable();

  Watch(const Program& program, Fault fault);
  // Kills what is left of the program.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  pid_t pid() const;
  // The wait status of the program itself; nullopt: it has not ended within that time.
  std::optional<int> wait(std::chrono::milliseconds most);
  // Lets the call that hangs go on.
  void release();
  // Every process of it has ended. False: not within that time.
  bool wait_for_all(std::chrono::milliseconds most);

  bool injected() const;
  std::string injected_at() const;  // "rename /…/run.json"
  // By process name. To be read when all have ended.
  const std::map<std::string, std::vector<Call>>& calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace phalanx::storage
