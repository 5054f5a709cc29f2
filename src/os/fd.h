// A file descriptor with one owner, and whole-buffer reads and writes that survive EINTR.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace phalanx::os {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();  // closes

 private:
  int fd_ = -1;
};

struct PipeEnds {
  Fd read;
  Fd write;
};
base::Result<PipeEnds> make_pipe();  // both ends close-on-exec, blocking
void widen_pipe(int fd);             // to 1 MiB, so that its ends need not take turns; refused where this user's pipes hold much already
base::Status set_nonblocking(int fd);
base::Status set_cloexec(int fd, bool on);

// Outcome of one non-blocking read or write.
struct IoStep {
  enum Kind { kBytes, kWouldBlock, kEnd, kError } kind;
  size_t bytes = 0;      // of kBytes
  int error_number = 0;  // of kError
};
IoStep read_step(int fd, char* data, size_t size);
IoStep write_step(int fd, const char* data, size_t size);  // kEnd is EPIPE or ECONNRESET; never raises SIGPIPE if it is ignored

// Blocking, to the last byte.
base::Status write_all(int fd, std::string_view data, std::string_view what);
// To the end of a regular file that nobody else writes to. What was written of it is taken back if the rest has no room.
base::Status append_all(int fd, std::string_view data, std::string_view what);

}  // namespace phalanx::os
