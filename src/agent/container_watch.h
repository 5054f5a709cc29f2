// The end of the container that this agent was started in. A container that has processes of its own takes them along when its first one
// ends. One that shares those of its host (--pid host) may not: podman kills the first process only, and what was started by `podman exec`
// goes on. There the agent watches that process.
#pragma once

#include <functional>

#include "machine/outside.h"
#include "os/fd.h"
#include "os/loop.h"

namespace phalanx::agent {

class ContainerWatch {
 public:
  // ended is called from the loop, at most once. Does nothing where the container's first process cannot be seen from here.
  base::Status open(os::Loop& loop, const machine::Outside& outside, std::function<void()> ended);

 private:
  os::Fd init_;
};

}  // namespace phalanx::agent
