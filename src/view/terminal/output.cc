#include "view/terminal/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/apart.h"
#include "os/clock.h"

namespace phalanx::view {
namespace {

// A pipe that poll calls writable takes PIPE_BUF bytes without blocking (pipe(7)); a terminal promises less.
constexpr size_t kCarefulPipeBytes = 4096;
constexpr size_t kCarefulTerminalBytes = 256;

}  // namespace

Output::Output(os::Loop& loop, int fd, bool may_reopen) : loop_(loop), fd_(fd) {
  struct stat s{};
  if (::fstat(fd, &s) != 0) {
    close(errno);
    return;
  }
  bool terminal = ::isatty(fd) == 1;
  if (S_ISSOCK(s.st_mode)) {
    way_ = Way::kSocket;
  } else if (S_ISFIFO(s.st_mode) || terminal) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    if (may_reopen) reopened_ = os::Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (may_reopen && !reopened_.valid() && errno == ENXIO && !terminal) close(0);  // a pipe that nobody reads
    way_ = reopened_.valid() ? Way::kNonBlocking : Way::kCareful;
    if (reopened_.valid()) fd_ = reopened_.get();
  }
}

Output::~Output() {
  watch(false);
  if (!relay_ || closed_ || pending() == 0) return;
  // The disk of the file hangs. Another process gives it the rest when it comes back.
  (void)os::fork_apart("phalanx-copy", {fd_}, [this] {
    const std::string rest = writing_.substr(written_) + filling_;
    (void)os::write_all(fd_, rest, "standard output");
  });
}

void Output::decouple() {
  struct stat s{};
  if (closed_ || relay_ || ::fstat(fd_, &s) != 0) return;
  if (::isatty(fd_) != 1) bound_ = kDecoupledBound;
  if (!S_ISREG(s.st_mode)) return;
  base::Result<os::Relay> relay = os::Relay::to(fd_);
  if (!relay.ok()) return;  // no process for it: it is written directly, as before
  relay_.emplace(std::move(relay).value());
  fd_ = relay_->fd();
  way_ = Way::kSocket;
}

os::IoStep Output::write_some(const char* data, size_t size) {
  if (way_ == Way::kSocket) {
    ssize_t n = ::send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return {os::IoStep::kBytes, static_cast<size_t>(n)};
    if (errno == EAGAIN || errno == EINTR) return {os::IoStep::kWouldBlock};
    if (errno == EPIPE || errno == ECONNRESET)
      return relay_ && relay_->error_number() != 0 ? os::IoStep{os::IoStep::kError, 0, relay_->error_number()}
                                                   : os::IoStep{os::IoStep::kEnd};
    return {os::IoStep::kError, 0, errno};
  }
  if (way_ == Way::kCareful) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) return {os::IoStep::kWouldBlock};
    size = std::min(size, ::isatty(fd_) == 1 ? kCarefulTerminalBytes : kCarefulPipeBytes);
  }
  return os::write_step(fd_, data, size);
}

bool Output::write_pending() {
  while (!closed_) {
    if (written_ == writing_.size()) {
      writing_.clear();
      written_ = 0;
      if (filling_.empty()) return true;
      writing_.swap(filling_);
    }
    os::IoStep step = write_some(writing_.data() + written_, writing_.size() - written_);
    if (step.kind == os::IoStep::kWouldBlock) return false;
    if (step.kind == os::IoStep::kBytes && step.bytes > 0) written_ += step.bytes;
    else close(step.kind == os::IoStep::kError ? step.error_number : 0);
  }
  filling_.clear();
  return true;
}

void Output::pump() {
  bool done = write_pending();
  if (!wants_more()) was_full_ = true;
  watch(!done || was_full_);  // on_room_ is called from the loop only
}

void Output::tell_room() {
  if (!was_full_ || pending() > bound_ / 2) return;
  was_full_ = false;
  if (on_room_) on_room_();
}

void Output::watch(bool on) {
  if (on == (watch_ != 0)) return;
  if (!on) {
    loop_.unwatch(watch_);
    watch_ = 0;
    return;
  }
  auto watched = loop_.watch(fd_, EPOLLOUT, [this](uint32_t) {
    write_pending();
    tell_room();
    watch(pending() > 0 || was_full_);
  });
  if (watched.ok()) watch_ = *watched;
  else close(EIO);
}

void Output::close(int error_number) {
  closed_ = true;
  error_number_ = error_number;
  writing_.clear();
  filling_.clear();
  written_ = 0;
}

bool Output::drain(std::chrono::milliseconds most) {
  os::Mono end = os::mono_now() + most;
  while (!write_pending()) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - os::mono_now());
    if (left.count() <= 0) return false;
    pollfd ready{fd_, POLLOUT, 0};
    ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
  }
  watch(false);
  if (!relay_ || closed_) return true;
  const bool taken = relay_->wait_taken(std::max(os::milliseconds(0), std::chrono::ceil<os::milliseconds>(end - os::mono_now())));
  if (int failure = relay_->error_number(); failure != 0) close(failure);
  return taken;
}

}  // namespace phalanx::view
