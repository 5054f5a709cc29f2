#include "os/wait_notice.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "os/apart.h"

namespace phalanx::os {

WaitNotice::WaitNotice(const std::string& text, std::chrono::milliseconds after) {
  base::Result<PipeEnds> pipe = make_pipe();
  const Fd errors(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));  // the child's own 0, 1 and 2 lead nowhere
  if (!pipe.ok() || !errors.valid()) return;
  const int gone_on = pipe->read.get();
  base::Result<pid_t> child = fork_apart("phalanx-notice", {gone_on, errors.get()}, [&] {
    pollfd caller{gone_on, POLLIN, 0};
    if (::poll(&caller, 1, static_cast<int>(after.count())) == 0) (void)write_all(errors.get(), text, "standard error");
  });
  if (child.ok()) caller_ = std::move(pipe->write);
}

}  // namespace phalanx::os
