// Writing to our own stdout or stderr without ever holding up the loop.
//
// A pipe or terminal is opened again through /proc/self/fd as an open file description of our own that does not block
// (O_NONBLOCK on the one we inherited would change it for the shell and everybody else who shares it). Where that is not
// possible we write small pieces and only when poll says that there is room. Regular files cannot be polled and are
// written directly, or, after decouple(), by a process of their own (os/relay.h). A socket is written with MSG_DONTWAIT.
//
// Memory: what cannot be written yet is kept. From the bound on wants_more() is false: the owner stops making more, or drops it.
//
// When the reader is gone (EPIPE) everything later is dropped without a word: `phalanx run … | head` goes on running.
// SIGPIPE must be ignored by the process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "os/fd.h"
#include "os/loop.h"
#include "os/relay.h"

namespace phalanx::view {

class Output {
 public:
  static constexpr size_t kBound = 1 << 20;
  static constexpr size_t kDecoupledBound = 32 << 20;  // of what is no terminal: nobody reads old lines off it first

  // fd stays the caller's and must outlive the Output, as must the loop. A closed fd gives an Output that drops everything.
  // may_reopen false: as where /proc is not mounted.
  Output(os::Loop& loop, int fd, bool may_reopen = true);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // For an owner that must never wait and drops what does not fit: a regular file is written without waiting for its disk, and what is no
  // terminal may fall behind by kDecoupledBound.
  // What the disk has not taken when the Output is destroyed is written by a process that waits for it.
  void decouple();

  // Append here, then pump(): one write for all of it.
  std::string& buffer() { return filling_; }
  void pump();

  size_t pending() const { return writing_.size() - written_ + filling_.size(); }
  bool wants_more() const { return pending() < bound_; }
  size_t bound() const { return bound_; }
  // Called from the loop when wants_more() had been false and half of the bound is free again.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }

  // Writes what is pending, waiting for the reader; false if it was not all taken in time.
  bool drain(std::chrono::milliseconds most);

  bool closed() const { return closed_; }
  int error_number() const { return error_number_; }  // why it is closed, if not because the reader is gone; else 0

 private:
  enum class Way { kDirect, kNonBlocking, kSocket, kCareful };
  os::IoStep write_some(const char* data, size_t size);
  bool write_pending();  // false: the reader takes no more now
  void watch(bool on);
  void close(int error_number);
  void tell_room();

  os::Loop& loop_;
  int fd_;
  os::Fd reopened_;
  std::optional<os::Relay> relay_;
  size_t bound_ = kBound;
  Way way_ = Way::kDirect;
  os::WatchId watch_ = 0;
  std::string writing_;
  size_t written_ = 0;  // of writing_
  std::string filling_;
  bool was_full_ = false;
  bool closed_ = false;
  int error_number_ = 0;
  std::function<void()> on_room_;
};

}  // namespace phalanx::view
