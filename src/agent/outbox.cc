#include "agent/outbox.h"

namespace phalanx::agent {

Outbox::Outbox(os::Loop& loop, int fd, std::function<void()> on_room, std::function<void()> on_broken)
    : loop_(loop), fd_(fd), on_room_(std::move(on_room)), on_broken_(std::move(on_broken)) {}

Outbox::~Outbox() {
  if (watch_) loop_.unwatch(watch_);
}

void Outbox::pump() {
  while (!broken_) {
    if (written_ == active_.size()) {
      active_.clear();
      written_ = 0;
      std::string& next = control_.empty() ? output_ : control_;
      if (next.empty()) break;
      active_.swap(next);
    }
    os::IoStep step = os::write_step(fd_, active_.data() + written_, active_.size() - written_);
    if (step.kind == os::IoStep::kBytes) {
      written_ += step.bytes;
      continue;
    }
    if (step.kind == os::IoStep::kWouldBlock) break;
    broken_ = true;
    active_.clear();
    written_ = 0;
  }
  update_watch();
  if (output_.size() >= kOutputBound) was_full_ = true;
  if (was_full_ && output_.size() < kOutputBound / 2) {
    was_full_ = false;
    loop_.after(os::nanoseconds(0), on_room_);  // not from inside a caller's control() or output()
  }
}

void Outbox::update_watch() {
  bool waiting = !broken_ && !active_.empty();
  if (waiting && !watch_) {
    base::Result<os::WatchId> watch = loop_.watch(fd_, EPOLLOUT, [this](uint32_t) { pump(); });
    if (watch.ok()) watch_ = *watch;
    else broken_ = true;
  } else if (!waiting && watch_) {
    loop_.unwatch(watch_);
    watch_ = 0;
  }
  if (broken_ && on_broken_) {
    loop_.after(os::nanoseconds(0), on_broken_);
    on_broken_ = nullptr;
  }
}

}  // namespace phalanx::agent
