// Calls that may never return, made in a child with a deadline: statfs on a dead NFS server, dlopen of a driver, a name look-up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::os {

struct Guarded {
  std::string name;                   // for the error: "storage:/data"
  std::function<std::string()> call;  // runs in a forked child; what it returns comes back, at most 16 MiB
};

// Runs the calls in forked children (only for single-threaded programs) and returns when all have answered, or when `deadline` has
// passed. Calls that answer at once share a child; a call that blocks gets the child it is in to itself and does not delay the
// others (guarded.cc). Calls must not rely on each other, and each runs exactly once.
//
// Result i is what call i returned, or an error:
//   kTimeout   "no answer for 1.2 s; its process is in state D, waiting in fuse_get_req": it was seen to be blocked
//   kInternal  "killed by SIGSEGV"; or "not finished …: the machine is busy" after twice the deadline, when it was not seen to be blocked
// Children still running are killed and not waited for: a process in state D cannot be reaped before its file system answers.
std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, std::chrono::milliseconds deadline);

// "; its process is in state D, waiting in fuse_get_req": what a person would look up by hand. Empty when it cannot be told.
std::string stuck_in(pid_t pid);

}  // namespace phalanx::os
