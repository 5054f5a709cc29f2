// A regular file that can be written without waiting for its disk: a socket whose other end is a process (os/apart.h) that copies what
// arrives to the file. The socket takes what fits into its buffer; the rest is the caller's to keep or to drop.
//
// When the Relay is destroyed the process writes what it still has and exits, however long its disk takes.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::os {

class Relay {
 public:
  // target: open for writing; the process gets a copy of it.
  static base::Result<Relay> to(int target);
  // Appends to the file, which the process creates (0600) and opens itself: that may wait as well.
  static base::Result<Relay> to_file(const std::string& path);
  Relay(Relay&&) = default;

  // Write here, with MSG_DONTWAIT or after set_nonblocking.
  int fd() const { return socket_.get(); }
  // Everything that was written to fd() is in the file, or writing has failed. Does not wait.
  bool taken() const;
  // Waits for taken(), at most so long; false if that was too short.
  bool wait_taken(std::chrono::milliseconds most);
  // Why the process has stopped writing; 0 while it has not.
  int error_number();

 private:
  explicit Relay(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
  int error_number_ = 0;
};

}  // namespace phalanx::os
