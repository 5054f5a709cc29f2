// Calls that may never return, made in a child with a deadline: statfs on a dead NFS server, dlopen of a driver, a name look-up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/clock.h"

namespace phalanx::os {

struct Guarded {
  std::string name;                   // for the error: "storage:/data"
  std::function<std::string()> call;  // runs in a forked child; what it returns comes back, at most 16 MiB
};

// How long calls are waited for. Past the deadline only as long as the machine is too busy to run one, or one still moves: it stood still
// for less than `still`.
struct Patience {
  explicit Patience(milliseconds usual) : deadline(usual), still(usual * 3 / 4), most(usual * 2) {}
  Patience(milliseconds usual, milliseconds stuck_after, milliseconds at_most) : deadline(usual), still(stuck_after), most(at_most) {}
  milliseconds deadline;
  milliseconds still;
  milliseconds most;  // in all
};

// Runs the calls in forked children (only for single-threaded programs) and returns when all have answered, or when the patience is
// over. Calls that answer at once share a child; a call that blocks gets the child it is in to itself and does not delay the
// others (guarded.cc). Calls must not rely on each other, and each runs exactly once.
//
// Result i is what call i returned, or an error:
//   kTimeout   "no answer for 1.2 s; its process is in state D, waiting in fuse_get_req": it was seen to stand still
//   kInternal  "killed by SIGSEGV"
//   kUnreachable  when all time is over, and nothing is known but that: "not finished …: the machine is busy", or "…: it continues,
//                 slowly" of a call that waits again and again, as for a slow file system
// Children still running are killed and not waited for: a process in state D cannot be reaped before its file system answers.
std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, const Patience& patience);
inline std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, milliseconds deadline) {
  return run_guarded(calls, Patience(deadline));
}

// Changes whenever the process has run, as far as the system shows it (how often it has waited); "" when it cannot be told.
std::string steps_of(pid_t pid);

// "; its process is in state D, waiting in fuse_get_req": what a person would look up by hand. Empty when it cannot be told.
std::string stuck_in(pid_t pid);

}  // namespace phalanx::os
