#include "agent/container_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/try.h"

namespace phalanx::agent {

base::Status ContainerWatch::open(os::Loop& loop, const machine::Outside& outside, std::function<void()> ended) {
  if (outside.init == 0 || outside.pid_space.empty() || outside.pid_space != machine::own_space("/proc", "pid")) return base::ok();
  init_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, outside.init, 0)));  // before Linux 5.3 there is none: the lease ends the ranks
  if (!init_.valid()) return base::ok();
  TRY(loop.watch(init_.get(), EPOLLIN, [ended = std::move(ended)](uint32_t) { ended(); }));
  return base::ok();
}

}  // namespace phalanx::agent
