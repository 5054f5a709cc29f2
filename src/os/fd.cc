#include "os/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace phalanx::os {

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

base::Result<PipeEnds> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe2", "");
  return PipeEnds{Fd(ends[0]), Fd(ends[1])};
}

void widen_pipe(int fd) { ::fcntl(fd, F_SETPIPE_SZ, 1 << 20); }

base::Status set_nonblocking(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return base::system_error("fcntl O_NONBLOCK", std::to_string(fd));
  return base::ok();
}

base::Status set_cloexec(int fd, bool on) {
  if (::fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) != 0) return base::system_error("fcntl FD_CLOEXEC", std::to_string(fd));
  return base::ok();
}

IoStep read_step(int fd, char* data, size_t size) {
  for (;;) {
    ssize_t n = ::read(fd, data, size);
    if (n > 0) return {IoStep::kBytes, static_cast<size_t>(n)};
    if (n == 0) return {IoStep::kEnd};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStep::kWouldBlock};
    return {IoStep::kError, 0, errno};
  }
}

IoStep write_step(int fd, const char* data, size_t size) {
  for (;;) {
    ssize_t n = ::write(fd, data, size);
    if (n >= 0) return {IoStep::kBytes, static_cast<size_t>(n)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStep::kWouldBlock};
    if (errno == EPIPE || errno == ECONNRESET) return {IoStep::kEnd};
    return {IoStep::kError, 0, errno};
  }
}

base::Status write_all(int fd, std::string_view data, std::string_view what) {
  while (!data.empty()) {
    IoStep step = write_step(fd, data.data(), data.size());
    if (step.kind == IoStep::kBytes) data.remove_prefix(step.bytes);
    else if (step.kind == IoStep::kEnd) return base::system_error("write", what, EPIPE);
    else if (step.kind == IoStep::kError) return base::system_error("write", what, step.error_number);
    else return base::system_error("write", what, EAGAIN);
  }
  return base::ok();
}

base::Status append_all(int fd, std::string_view data, std::string_view what) {
  const off_t end = ::lseek(fd, 0, SEEK_END);
  base::Status written = write_all(fd, data, what);
  if (!written.ok() && end >= 0) (void)!::ftruncate(fd, end);
  return written;
}

}  // namespace phalanx::os
