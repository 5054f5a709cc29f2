// A copy of a folder that the launcher sends (wire/copy_messages.h), and the end of one; or a folder that it pushes to a path.
// Waits for this host's disk in the loop: the launcher copies over connections of their own, which start no ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/copy_link.h"
#include "agent/outbox.h"
#include "os/loop.h"
#include "sync/place.h"
#include "sync/receive.h"
#include "wire/copy_messages.h"

namespace phalanx::agent {

class CopyDuty {
 public:
  CopyDuty(os::Loop& loop, Outbox& outbox) : loop_(loop), outbox_(outbox) {}
  ~CopyDuty();
  CopyDuty(const CopyDuty&) = delete;
  CopyDuty& operator=(const CopyDuty&) = delete;

  void begin(wire::CopyBegin message);
  // CopyBytes or CopyPacked of the launcher. False: it is malformed.
  bool take(const wire::Frame& frame) { return take(frame, false); }
  void release(wire::CopyRelease message);
  void listen(const wire::CopyListen& message);
  void pass_on(const wire::CopyPassOn& message);

 private:
  // Calls `next` with the store as soon as no other session holds it.
  void with_store(void (CopyDuty::*next)(sync::Store));
  void receive_into(sync::Store store);
  void release_from(sync::Store store);
  bool take(const wire::Frame& frame, bool passed_on);
  bool take_contents(std::string_view bytes, bool passed_on);
  void take_list(std::string_view bytes);
  void tell_taken(bool lost = false);
  void inlet_over();
  void unlink();
  void build();
  void tell_progress();
  void watch_silence();
  void fail(base::Error error);
  base::Result<std::unique_ptr<sync::Incoming>> begin_receiving(sync::Store store, sync::Listing manifest);
  void say_done();
  void say_it_is_the_source();

  os::Loop& loop_;
  Outbox& outbox_;
  std::string unpacked_;     // taken again for each block
  std::string name_, list_;  // the manifest, or what changed of the last one
  wire::CopyBegin request_;
  std::optional<sync::Target> target_;  // of a push
  std::unique_ptr<sync::Incoming> receiver_;
  std::unique_ptr<CopyInlet> inlet_;
  std::unique_ptr<CopyOutlet> outlet_;
  bool in_chain_ = false;             // it has, or had, one of them
  bool damaged_ = false;              // what was passed on was not what it should be
  bool ignores_ = false;              // contents that were sent before the launcher knew of that
  size_t linked_content_ = SIZE_MAX;  // the last content of which a part was passed on
  uint64_t bytes_ = 0, told_ = 0;     // of contents: taken; of which the launcher knows
  bool over_ = false, failed_ = false;
  os::TimerId timer_ = 0, silence_timer_ = 0, unlink_timer_ = 0;
  os::Mono reported_, heard_;
  os::Mono waiting_since_;
};

}  // namespace phalanx::agent
