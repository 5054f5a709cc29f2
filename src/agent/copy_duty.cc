#include "agent/copy_duty.h"

#include <malloc.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/packing.h"
#include "base/sha256.h"
#include "base/try.h"
#include "os/clock.h"
#include "sync/scan.h"
#include "sync/source_mark.h"

namespace phalanx::agent {
namespace {

constexpr os::milliseconds kLockRetry{20};
constexpr os::milliseconds kReport{1000};
constexpr os::milliseconds kMostWait{300'000};           // for another session
constexpr os::milliseconds kMostSilence{20'000};         // of a launcher that owes bytes: its link may be cut, and the lock is needed
constexpr os::milliseconds kMostSilenceInChain{60'000};  // others may stand still before this one, one after the other
constexpr os::milliseconds kSilenceTick{2000};
constexpr uint64_t kTakenAtOnce = 1 << 20;  // bytes, before the launcher hears of them
constexpr size_t kMadeAtOnce = 256;         // files, before the loop looks at its input again
constexpr size_t kReserved = 64 << 20;      // of a list at once; a longer one grows

// Lists of megabytes come and go. This process does nothing but copy, and ends soon: pages that it has are used again rather than given
// back, since fresh ones cost more time than what is written to them.
void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 4 << 20);
}

// Empty: the copy that lies ready was made from another list than the changes.
std::string changed_list(sync::Store& store, const std::string& changes, const std::string& digest) {
  const sync::Listing* before = store.free_list();
  if (!before) return {};
  base::Result<std::string> now = sync::with_changes(*before, changes);
  if (!now.ok()) return {};
  base::Sha256 hash;
  hash.update(*now);
  return hash.bytes() == digest ? *std::move(now) : std::string();
}

}  // namespace

CopyDuty::~CopyDuty() {
  if (timer_) loop_.cancel(timer_);
  if (silence_timer_) loop_.cancel(silence_timer_);
  loop_.cancel(unlink_timer_);
}

// A time in which this process did not run is no silence: what came meanwhile is yet to be read.
void CopyDuty::watch_silence() {
  silence_timer_ = loop_.after(kSilenceTick, [this, due = os::mono_now() + kSilenceTick] {
    silence_timer_ = 0;
    const os::Mono now = os::mono_now();
    heard_ = std::min(heard_ + (now - due), now);
    if (over_ || !receiver_ || receiver_->complete()) return;
    tell_taken();
    const os::milliseconds most = in_chain_ ? kMostSilenceInChain : kMostSilence;
    if (now - heard_ > most)
      return fail(
          base::fail(base::ErrorKind::kTimeout,
                     fmt::format("no contents have come for {} seconds; run the same command again to go on", most.count() / 1000)));
    watch_silence();
  });
}

void CopyDuty::fail(base::Error error) {
  over_ = failed_ = true;
  receiver_.reset();  // and with it the lock
  unlink();
  if (timer_) loop_.cancel(timer_);
  timer_ = 0;
  outbox_.control(wire::CopyDone{{false, std::move(error)}, "", true});
}

void CopyDuty::with_store(void (CopyDuty::*next)(sync::Store)) {
  timer_ = 0;
  std::string root = sync::store_root();
  if (!request_.target.empty() && sync::holds_mark(request_.target, request_.source_mark)) return say_it_is_the_source();
  if (!request_.target.empty()) {
    base::Result<sync::Target> target = sync::open_target(request_.target, request_.among_others);
    if (!target.ok()) return fail(std::move(target).error());
    root = target->path + "/" + sync::kIncoming;
    target->made = target->made || (target_ && target_->made);  // at an earlier look
    target_ = std::move(*target);
  }
  if (root.empty()) return fail(base::fail(base::ErrorKind::kUnfit, "neither HOME nor XDG_CACHE_HOME names a directory for the copy"));
  base::Result<std::optional<sync::Store>> store = sync::Store::open(root);
  if (!store.ok()) return fail(std::move(store).error());
  if (*store && (!target_ || is_in_its_place(*target_))) {
    (*store)->at_work = [this] { tell_progress(); };
    return (this->*next)(std::move(**store));
  }
  const os::Mono now = os::mono_now();
  if (waiting_since_.ns == 0) waiting_since_ = reported_ = now;
  if (now - waiting_since_ > kMostWait)
    return fail(base::fail(base::ErrorKind::kTimeout, fmt::format("another phalanx has been copying to {} for 5 minutes", root)));
  if (now - reported_ > kReport) {
    reported_ = now;
    outbox_.output(wire::CopyProgress{});
  }
  timer_ = loop_.after(kLockRetry, [this, next] { with_store(next); });
}

void CopyDuty::begin(wire::CopyBegin message) {
  if (receiver_ || timer_ || !name_.empty()) return fail(base::fail(base::ErrorKind::kInternal, "a second copy over one connection"));
  name_ = message.name;
  request_ = std::move(message);
  keep_memory();
  const bool changes = request_.changes_bytes > 0;
  if (!sync::is_copy_name(name_) || request_.manifest_bytes == 0 || request_.manifest_bytes > sync::kMostManifestBytes ||
      request_.changes_bytes > request_.manifest_bytes ||
      (changes && (!request_.target.empty() || request_.digest.size() != sync::kDigestBytes)))
    fail(base::fail(base::ErrorKind::kInternal, "a malformed request for a copy"));
}

bool CopyDuty::take(const wire::Frame& frame, bool passed_on) {
  std::string_view bytes;
  if (frame.type == wire::FrameType::kCopyBytes) {
    base::Result<wire::CopyBytes> message = wire::decode<wire::CopyBytes>(frame.payload);
    if (!message.ok()) return false;
    bytes = message->data;
  } else {
    base::Result<wire::CopyPacked> message = wire::decode<wire::CopyPacked>(frame.payload);
    if (!message.ok()) return false;
    if (!receiver_ || !base::unpack(message->packing, message->data, message->size, unpacked_)) {
      if (!passed_on && !over_) fail(base::fail(base::ErrorKind::kInternal, "malformed contents of files"));
      return !passed_on;
    }
    bytes = unpacked_;
  }
  if (passed_on && (bytes.empty() || over_ || !receiver_ || receiver_->complete())) return false;
  if (over_) return true;  // what was under way when it failed
  heard_ = os::mono_now();
  if (!receiver_) {
    take_list(bytes);
    return true;
  }
  if (outlet_ && !ignores_) outlet_->pass_on(frame);
  return take_contents(bytes, passed_on);
}

// What another host has passed on and is not what it should be, the launcher is asked for; so is it for the hosts behind this one.
bool CopyDuty::take_contents(std::string_view bytes, bool passed_on) {
  if (receiver_->complete() && !bytes.empty()) fail(base::fail(base::ErrorKind::kInternal, "more was sent than was asked for"));
  if (over_ || ignores_) return !passed_on;
  const size_t content = receiver_->received();
  base::Status taken = receiver_->receive(bytes);
  const bool surplus = !taken.ok() && passed_on && receiver_->complete();
  if (!taken.ok() && !surplus) {
    const bool by_link = passed_on || (content == linked_content_ && receiver_->received() == content);
    const std::optional<uint64_t> before = by_link ? receiver_->begin_content_again() : std::nullopt;
    if (!before) {
      fail(std::move(taken).error());
      return !passed_on;
    }
    bytes_ = *before;
    damaged_ = true;
    if (passed_on) return false;
    ignores_ = true;  // until the launcher says that it begins again
    inlet_over();
    return true;
  }
  bytes_ += bytes.size();
  if (passed_on) linked_content_ = receiver_->received();
  // The launcher lets no more go out than the slowest host of a chain can take.
  if (bytes_ - told_ >= kTakenAtOnce) tell_taken();
  if (!receiver_->complete() || timer_) return !surplus;  // timer_: it is at it
  tell_taken();
  build();
  return !surplus;
}

void CopyDuty::tell_taken(bool lost) {
  if (!in_chain_ || (told_ == bytes_ && !lost)) return;
  told_ = bytes_;
  if (lost) heard_ = os::mono_now();  // from now on the launcher owes what is missing
  outbox_.control(wire::CopyTaken{bytes_, lost});
}

void CopyDuty::listen(const wire::CopyListen& message) {
  if (message.address.empty()) {  // by now
    inlet_.reset();
    if (!ignores_) return tell_taken(true);
    ignores_ = false;
    heard_ = os::mono_now();
    return;
  }
  wire::CopyListening answer;
  auto frame = [this](const wire::Frame& one) { return take(one, true); };
  inlet_ = std::make_unique<CopyInlet>(loop_, CopyInlet::Handlers{frame, [this] { inlet_over(); }});
  base::Result<uint16_t> port = inlet_->listen(message.address, message.key);
  if (port.ok()) answer.port = *port;
  else answer.outcome = {false, std::move(port).error()};
  in_chain_ = true;
  outbox_.control(answer);
}

void CopyDuty::pass_on(const wire::CopyPassOn& message) {
  outlet_.reset();
  if (message.address.empty()) return;
  in_chain_ = true;
  outlet_ = std::make_unique<CopyOutlet>(loop_);
  outlet_->dial({message.address, static_cast<uint16_t>(message.port)}, message.key, [this](base::Status status) {
    wire::CopyPassing answer;
    if (!status.ok()) answer.outcome = {false, std::move(status).error()};
    outbox_.control(answer);
  });
}

void CopyDuty::inlet_over() {
  unlink();
  tell_taken(true);
}

// Not at once: it may be called from within one of them. The host behind may yet be owed what is on its way out, unless this copy failed.
void CopyDuty::unlink() {
  if (unlink_timer_) return;
  unlink_timer_ = loop_.after(os::nanoseconds(0), [this] {
    unlink_timer_ = 0;
    inlet_.reset();
    if (failed_ || damaged_) outlet_.reset();
    damaged_ = false;
  });
}

void CopyDuty::take_list(std::string_view bytes) {
  const uint64_t announced = request_.changes_bytes > 0 ? request_.changes_bytes : request_.manifest_bytes;
  if (list_.size() + bytes.size() > announced) return fail(base::fail(base::ErrorKind::kInternal, "more was sent than announced"));
  if (list_.empty()) list_.reserve(std::min<uint64_t>(announced, kReserved));
  list_ += bytes;
  if (list_.size() == announced) with_store(&CopyDuty::receive_into);
}

base::Result<std::unique_ptr<sync::Incoming>> CopyDuty::begin_receiving(sync::Store store, sync::Listing manifest) {
  if (target_) {
    TRY_ASSIGN(std::unique_ptr<sync::Placer> placer,
               sync::Placer::begin(std::move(store), std::move(*target_), std::move(manifest), request_.mode, request_.remove));
    return std::unique_ptr<sync::Incoming>(std::move(placer));
  }
  store.tidy({}, os::wall_now_ns(), [](const std::string&, const std::string&) {});
  TRY_ASSIGN(sync::Receiver receiver, sync::Receiver::begin(std::move(store), name_, std::move(manifest)));
  return std::unique_ptr<sync::Incoming>(new sync::Receiver(std::move(receiver)));
}

void CopyDuty::receive_into(sync::Store store) {
  std::string list = std::move(list_);
  list_ = std::string();
  if (request_.changes_bytes > 0) {
    list = changed_list(store, list, request_.digest);
    request_.changes_bytes = 0;
    waiting_since_ = {};
    if (list.empty()) return outbox_.control(wire::CopyWanted{{}, 0, 0, true});  // the lock goes meanwhile
  }
  base::Result<sync::Listing> manifest = sync::Listing::read(std::move(list));
  if (!manifest.ok()) return fail(std::move(manifest).error());
  base::Result<std::unique_ptr<sync::Incoming>> receiver = begin_receiving(std::move(store), std::move(*manifest));
  if (!receiver.ok()) return fail(std::move(receiver).error());
  receiver_ = std::move(*receiver);
  outbox_.control(wire::CopyWanted{receiver_->wanted(), receiver_->partial().entry, receiver_->partial().bytes});
  watch_silence();
  (void)take_contents("", false);  // files without content come with nothing
}

void CopyDuty::build() {
  timer_ = 0;
  base::Result<bool> whole = receiver_->build(kMadeAtOnce);
  if (!whole.ok()) return fail(std::move(whole).error());
  if (*whole) {
    over_ = true;
    return say_done();
  }
  tell_progress();
  timer_ = loop_.after(os::nanoseconds(0), [this] { build(); });
}

// Also from within a long step, of which the launcher would otherwise hear nothing and give up.
void CopyDuty::tell_progress() {
  const os::Mono now = os::mono_now();
  if (now - reported_ <= kReport) return;
  reported_ = now;
  outbox_.output(wire::CopyProgress{receiver_ ? std::min<uint64_t>(receiver_->built(), wire::kMostWanted) : 0});
}

void CopyDuty::say_done() {
  wire::CopyDone done;
  done.path = receiver_->path();
  done.removed = receiver_->removed();
  done.stayed = receiver_->stayed();
  receiver_.reset();
  if (request_.waits) sync::stamp_copy_ahead(done.path);
  outbox_.control(done);
}

// Every file would be replaced by a copy of itself: who has one open would go on writing into what is gone.
void CopyDuty::say_it_is_the_source() {
  over_ = true;
  wire::CopyDone done;
  done.path = request_.target;
  done.is_source = true;
  outbox_.control(done);
}

void CopyDuty::release(wire::CopyRelease message) {
  if (receiver_ || timer_ || !name_.empty()) return fail(base::fail(base::ErrorKind::kInternal, "a second copy over one connection"));
  name_ = std::move(message.name);
  keep_memory();
  with_store(&CopyDuty::release_from);
}

void CopyDuty::release_from(sync::Store store) {
  base::Result<bool> kept = store.release(name_);
  if (!kept.ok()) return fail(std::move(kept).error());
  over_ = true;
  outbox_.control(wire::CopyDone{{}, store.copy_path(name_), *kept});
}

}  // namespace phalanx::agent
