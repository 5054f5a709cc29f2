// A TCP connection that is sealed (wire/sealed.h), on a loop. Never blocks; what cannot be sent yet waits in a buffer.
#pragma once

#include <functional>
#include <string>

#include "os/fd.h"
#include "os/loop.h"
#include "wire/sealed.h"

namespace phalanx::wire {

class SealedSocket {
 public:
  struct Handlers {
    std::function<void()> open = {};  // the other side has proved itself
    std::function<void(const Record&)> record;
    // Called once; nothing comes after it. kind: of SealedStream::feed, or kTimeout where the connection is over.
    std::function<void(base::ErrorKind kind, const std::string& why)> end;
    std::function<void()> drained = {};  // all that was sent has been taken
  };
  // The socket is connected and non-blocking. The handlers must not destroy this object.
  SealedSocket(os::Loop& loop, os::Fd socket, SealedStream stream, Handlers handlers);
  ~SealedSocket();
  SealedSocket(const SealedSocket&) = delete;
  SealedSocket& operator=(const SealedSocket&) = delete;

  void begin();  // sends the greeting, and hands out what was already received
  void send(RecordType type, std::string_view payload);
  size_t pending() const { return outgoing_.size() - sent_; }
  bool open() const { return stream_.open(); }
  void pause(bool paused);  // reads no more while true
  // For another process, which goes on with them. Everything that was sent must have been taken; this object is then empty.
  os::Fd take_socket();
  std::string state() const { return stream_.state(); }

 private:
  void read();
  void take_records();
  void write();
  void send_raw(std::string_view bytes);
  void finish(base::ErrorKind kind, const std::string& why);

  os::Loop& loop_;
  os::Fd socket_;
  SealedStream stream_;
  Handlers handlers_;
  os::WatchId watch_ = 0;
  std::string outgoing_;
  size_t sent_ = 0;
  bool paused_ = false, over_ = false, told_open_ = false;
};

// A peer that is gone without a word is noticed within about 15 s.
void notice_a_dead_peer(int socket);

}  // namespace phalanx::wire
