// A process for work that may wait for a disk: a child that runs code of this program and shares nothing with it but the descriptors it is
// given. The loop of the parent never waits for such a disk, and the parent can exit while the child still hangs in a system call that
// nothing can interrupt (a frozen or dead file system); a thread would keep the whole program from exiting.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "base/result.h"

namespace phalanx::os {

// Runs `body` in a child and exits with 0 after it. The child has a session of its own, `/` as its folder, all signals blocked (so it ends
// when its work does, or by SIGKILL), /dev/null as 0, 1 and 2, and of the caller's descriptors only `keep`. `ps` shows it as `name` (at
// most 15 bytes). The caller must have one thread only, and reaps the child like any other.
base::Result<pid_t> fork_apart(const char* name, std::vector<int> keep, const std::function<void()>& body);
// Waits for its end, at most so long, and reaps it. False: it has not ended (it goes on), or there is no such child.
bool wait_apart(const base::Result<pid_t>& child, std::chrono::milliseconds most);
// Both.
bool run_apart(const char* name, const std::function<void()>& body, std::chrono::milliseconds most);

}  // namespace phalanx::os
