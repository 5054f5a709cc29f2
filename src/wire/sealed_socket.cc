#include "wire/sealed_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

namespace phalanx::wire {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kMostSent = 1 << 20;  // that are kept at the beginning of the buffer

}  // namespace

void notice_a_dead_peer(int socket) {
  const int on = 1, idle_s = 5, interval_s = 3, probes = 3, unanswered_ms = 15'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
}

SealedSocket::SealedSocket(os::Loop& loop, os::Fd socket, SealedStream stream, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), stream_(std::move(stream)), handlers_(std::move(handlers)) {
  notice_a_dead_peer(socket_.get());
}

SealedSocket::~SealedSocket() {
  if (watch_) loop_.unwatch(watch_);
}

void SealedSocket::begin() {
  base::Result<os::WatchId> watch = loop_.watch(socket_.get(), paused_ ? 0u : unsigned{EPOLLIN}, [this](uint32_t events) {
    if (events & EPOLLOUT) write();
    if (!over_ && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read();
  });
  if (!watch.ok()) return finish(base::ErrorKind::kInternal, watch.error().message);
  watch_ = *watch;
  told_open_ = stream_.open();
  if (told_open_) take_records();
  else send_raw(stream_.greeting());
}

void SealedSocket::send(RecordType type, std::string_view payload) {
  if (!over_) send_raw(stream_.seal(type, payload));
}

void SealedSocket::send_raw(std::string_view bytes) {
  if (over_ || bytes.empty()) return;
  outgoing_.append(bytes);
  write();
}

void SealedSocket::pause(bool paused) {
  paused_ = paused;
  if (watch_) loop_.rewatch(watch_, (paused_ ? 0u : unsigned{EPOLLIN}) | (pending() ? unsigned{EPOLLOUT} : 0u));
}

void SealedSocket::write() {
  const bool waited = pending() > 0;
  while (pending() > 0) {
    const os::IoStep step = os::write_step(socket_.get(), outgoing_.data() + sent_, pending());
    if (step.kind == os::IoStep::kWouldBlock) break;
    if (step.kind != os::IoStep::kBytes) {  // the end is noticed while reading, which may still have a last word to hand out
      sent_ = outgoing_.size();
      break;
    }
    sent_ += step.bytes;
    if (sent_ < kMostSent) continue;
    outgoing_.erase(0, sent_);
    sent_ = 0;
  }
  if (pending() == 0) {
    outgoing_.clear();
    sent_ = 0;
  }
  pause(paused_);
  if (waited && pending() == 0 && handlers_.drained) handlers_.drained();
}

void SealedSocket::read() {
  static thread_local std::string buffer(kReadBytes, '\0');
  const os::IoStep step = os::read_step(socket_.get(), buffer.data(), buffer.size());
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes)
    return finish(base::ErrorKind::kTimeout,
                  step.kind == os::IoStep::kError ? std::strerror(step.error_number) : "the connection was closed");
  std::string reply;
  base::Status fed = stream_.feed(std::string_view(buffer.data(), step.bytes), reply);
  send_raw(reply);
  if (!fed.ok()) return finish(fed.error().kind, fed.error().message);
  if (stream_.open() && !told_open_) {
    told_open_ = true;
    if (handlers_.open) handlers_.open();
  }
  take_records();
}

void SealedSocket::take_records() {
  while (!over_) {
    base::Result<std::optional<Record>> record = stream_.next();
    if (!record.ok()) return finish(record.error().kind, record.error().message);
    if (!record->has_value()) return;
    handlers_.record(**record);
  }
}

void SealedSocket::finish(base::ErrorKind kind, const std::string& why) {
  if (over_) return;
  over_ = true;
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  socket_.reset();
  handlers_.end(kind, why);
}

os::Fd SealedSocket::take_socket() {
  over_ = true;
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  return std::move(socket_);
}

}  // namespace phalanx::wire
