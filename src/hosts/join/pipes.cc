#include "hosts/join/pipes.h"

#include "base/try.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kMostWaiting = 1 << 20;

}  // namespace

PipeSource::PipeSource(os::Loop& loop, os::Fd pipe, wire::SealedSocket& socket, wire::RecordType type, std::function<void()> over)
    : loop_(loop), pipe_(std::move(pipe)), socket_(socket), type_(type), over_(std::move(over)) {}

PipeSource::~PipeSource() {
  if (watch_) loop_.unwatch(watch_);
}

base::Status PipeSource::begin() {
  TRY(os::set_nonblocking(pipe_.get()));
  TRY_ASSIGN(watch_, loop_.watch(pipe_.get(), EPOLLIN, [this](uint32_t) { read(); }));
  return base::ok();
}

void PipeSource::go_on() {
  if (watch_) loop_.rewatch(watch_, EPOLLIN);
}

void PipeSource::read() {
  char buffer[kChunkBytes];
  const os::IoStep step = os::read_step(pipe_.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind == os::IoStep::kBytes) {
    socket_.send(type_, std::string_view(buffer, step.bytes));
    // Without EPOLLIN the end of the pipe is still reported, over and over: the watch is taken away only when all was read.
    if (socket_.pending() > kMostWaiting) loop_.rewatch(watch_, 0);
    return;
  }
  loop_.unwatch(watch_);
  watch_ = 0;
  pipe_.reset();
  over_();
}

PipeSink::PipeSink(os::Loop& loop, os::Fd pipe, wire::SealedSocket& socket) : loop_(loop), pipe_(std::move(pipe)), socket_(socket) {}

PipeSink::~PipeSink() {
  if (watch_) loop_.unwatch(watch_);
}

base::Status PipeSink::begin() {
  TRY(os::set_nonblocking(pipe_.get()));
  TRY_ASSIGN(watch_, loop_.watch(pipe_.get(), 0, [this](uint32_t) { write(); }));
  return base::ok();
}

void PipeSink::take(std::string_view bytes) {
  if (!pipe_.valid() || closing_) return;
  waiting_.append(bytes);
  write();
}

void PipeSink::close_after(std::function<void()> closed) {
  closing_ = true;
  closed_ = std::move(closed);
  if (pipe_.valid()) write();
  else finish();
}

void PipeSink::write() {
  size_t sent = 0;
  bool broken = false;
  while (sent < waiting_.size()) {
    const os::IoStep step = os::write_step(pipe_.get(), waiting_.data() + sent, waiting_.size() - sent);
    broken = step.kind == os::IoStep::kEnd || step.kind == os::IoStep::kError;
    if (step.kind != os::IoStep::kBytes) break;
    sent += step.bytes;
  }
  waiting_.erase(0, broken ? std::string::npos : sent);
  socket_.pause(waiting_.size() > kMostWaiting);
  if (broken || (closing_ && waiting_.empty())) return finish();
  loop_.rewatch(watch_, waiting_.empty() ? 0u : unsigned{EPOLLOUT});
}

void PipeSink::finish() {
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  pipe_.reset();
  if (closing_ && closed_) std::exchange(closed_, nullptr)();
}

}  // namespace phalanx::hosts
