// Calls that may never return, made in a child with a deadline: statfs on a dead NFS server, dlopen of a driver, a name look-up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace os {

struct Guarded {
  std::string name;                   // for the error: "storage:/data"
  std::function<std::string()> call;  // runs in a forked child; what it returns comes back, at most 16 MiB
};

// Runs all calls side by side, each in a child of its own (fork: only for single-threaded programs), and waits until `deadline`
// has passed. Result i is what call i returned, or an error: kTimeout "no answer for 1.2 s; its process is in state D, waiting in
// fuse_get_req", kInternal "killed by SIGSEGV". Children still running are killed and not waited for: a process in state D cannot
// be reaped before its file system answers.
std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, std::chrono::milliseconds deadline);

// "; its process is in state D, waiting in fuse_get_req": what a person would look up by hand. Empty when it cannot be told.
std::string stuck_in(pid_t pid);

}  // namespace os
