// Between a sealed socket and the pipes of a process, in both directions, with bounded memory: who is slow slows down the other end.
#pragma once

#include <functional>
#include <string>

#include "wire/sealed_socket.h"

namespace phalanx::hosts {

// What comes out of a pipe goes into the socket, as records of one type.
class PipeSource {
 public:
  // over: called once, at the end of the pipe.
  PipeSource(os::Loop& loop, os::Fd pipe, wire::SealedSocket& socket, wire::RecordType type, std::function<void()> over);
  ~PipeSource();
  base::Status begin();
  void go_on();  // the socket is drained
  bool over() const { return !pipe_.valid(); }

 private:
  void read();
  os::Loop& loop_;
  os::Fd pipe_;
  wire::SealedSocket& socket_;
  wire::RecordType type_;
  std::function<void()> over_;
  os::WatchId watch_ = 0;
};

// What came out of the socket goes into a pipe. While too much waits here, the socket is not read.
class PipeSink {
 public:
  PipeSink(os::Loop& loop, os::Fd pipe, wire::SealedSocket& socket);
  ~PipeSink();
  base::Status begin();
  void take(std::string_view bytes);
  // Closes the pipe when all has been written, and calls back.
  void close_after(std::function<void()> closed);

 private:
  void write();
  void finish();
  os::Loop& loop_;
  os::Fd pipe_;
  wire::SealedSocket& socket_;
  os::WatchId watch_ = 0;
  std::string waiting_;
  bool closing_ = false;
  std::function<void()> closed_;
};

}  // namespace phalanx::hosts
