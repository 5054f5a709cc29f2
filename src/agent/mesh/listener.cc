#include "agent/mesh/listener.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "base/try.h"

namespace phalanx::agent {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr int kReadsPerTurn = 16;  // then the others have theirs
constexpr size_t kHelloBytes = kMeshHello.size() + wire::kNonceBytes;

char* shared_buffer() {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);  // only pages that are used become memory
  return buffer.get();
}

}  // namespace

class MeshListener::Session {
 public:
  Session(os::Loop& loop, os::Fd fd, std::string_view key, std::function<void()> over)
      : loop_(loop), fd_(std::move(fd)), key_(key), over_(std::move(over)) {}
  ~Session() {
    if (watch_) loop_.unwatch(watch_);
    if (timer_) loop_.cancel(timer_);
  }
  base::Status start(os::milliseconds unproven, os::milliseconds idle) {
    TRY_ASSIGN(watch_, loop_.watch(fd_.get(), EPOLLIN, [this](uint32_t) { turn(); }));
    idle_ = idle;
    look_at(started_ + unproven);
    return base::ok();
  }
  bool proven() const { return proven_; }
  os::Mono started() const { return started_; }

 private:
  void end() {
    auto over = std::move(over_);  // it ends this object
    over();
  }
  // One timer at a time, for the earliest moment at which this session can be over; not one per byte.
  void look_at(os::Mono when) {
    timer_ = loop_.after(std::chrono::duration_cast<os::milliseconds>(when - os::mono_now()) + os::milliseconds(1), [this] {
      timer_ = 0;
      if (!proven_ || moved_ + idle_ <= os::mono_now()) return end();
      look_at(moved_ + idle_);
    });
  }

  void turn() {
    moved_ = os::mono_now();
    bool alive = write_out();
    for (int i = 0; alive && i < kReadsPerTurn && out_.size() - written_ < kReadBytes; ++i) {
      os::IoStep step = os::read_step(fd_.get(), shared_buffer(), kReadBytes);
      if (step.kind == os::IoStep::kWouldBlock) break;
      alive = step.kind == os::IoStep::kBytes && take({shared_buffer(), step.bytes}) && write_out();
    }
    if (!alive) return end();
    bool full = out_.size() - written_ >= kReadBytes;
    loop_.rewatch(watch_, (full ? 0U : EPOLLIN) | (out_.empty() ? 0U : EPOLLOUT));
  }

  bool write_out() {
    while (written_ < out_.size()) {
      os::IoStep step = os::write_step(fd_.get(), out_.data() + written_, out_.size() - written_);
      if (step.kind == os::IoStep::kWouldBlock) return true;
      if (step.kind != os::IoStep::kBytes) return false;
      written_ += step.bytes;
    }
    out_.clear();
    written_ = 0;
    return true;
  }

  // False: the session is over.
  bool take(std::string_view bytes) {
    if (sink_) return true;
    while (!bytes.empty()) {
      if (echo_left_ > 0) {
        size_t n = std::min<size_t>(echo_left_, bytes.size());
        out_.append(bytes.substr(0, n));
        echo_left_ -= static_cast<uint32_t>(n);
        bytes.remove_prefix(n);
        continue;
      }
      char command = head_.empty() ? bytes[0] : head_[0];
      size_t wanted = own_nonce_.empty() ? kHelloBytes : !proven_ ? wire::kProofBytes : command == 'E' ? 5 : 1;
      size_t n = std::min(wanted - head_.size(), bytes.size());
      head_.append(bytes.substr(0, n));
      bytes.remove_prefix(n);
      if (head_.size() < wanted) return true;
      if (!understand()) return false;
      if (sink_) return true;
    }
    return true;
  }

  bool understand() {
    if (own_nonce_.empty()) {
      if (!challenge()) return false;
    } else if (!proven_) {
      proven_ = wire::proves(head_, wire::Side::kDialer, key_, dialers_nonce_, own_nonce_);
      if (!proven_) return false;
    } else if (head_[0] == 'E') {
      std::memcpy(&echo_left_, head_.data() + 1, 4);
      if (echo_left_ > kMostEcho) return false;
    } else if (head_[0] == 'B') {
      sink_ = true;
    } else {
      return false;
    }
    head_.clear();
    return true;
  }

  bool challenge() {
    base::Result<std::string> nonce = wire::fresh_nonce();
    if (head_.compare(0, kMeshHello.size(), kMeshHello) != 0 || !nonce.ok()) return false;
    dialers_nonce_ = head_.substr(kMeshHello.size());
    own_nonce_ = std::move(nonce).value();
    out_.append(kMeshHello).append(own_nonce_);
    out_.append(wire::proof_of(wire::Side::kListener, key_, dialers_nonce_, own_nonce_));
    return true;
  }

  os::Loop& loop_;
  os::Fd fd_;
  std::string key_, dialers_nonce_, own_nonce_;  // own_nonce_: empty before the hello
  std::function<void()> over_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0;
  os::Mono started_ = os::mono_now(), moved_ = started_;
  os::milliseconds idle_{0};
  std::string head_;  // of a command that is not whole yet
  std::string out_;   // at most two reads
  size_t written_ = 0;
  uint32_t echo_left_ = 0;
  bool proven_ = false, sink_ = false;
};

MeshListener::MeshListener(os::Loop& loop, os::milliseconds unproven, os::milliseconds idle, size_t most_sessions)
    : loop_(loop), unproven_(unproven), idle_(idle), most_sessions_(most_sessions) {}
MeshListener::~MeshListener() { close(); }

wire::Listening MeshListener::listen(const wire::Listen& request) {
  close();
  wire::Listening answer;
  key_ = request.key;
  for (const wire::Place& place : request.places) {
    base::Result<uint32_t> port = ports_.size() < kMostPlaces && key_.size() == wire::kKeyBytes
                                      ? open(place)
                                      : base::fail(base::ErrorKind::kInternal, "too many addresses, or no key");
    wire::ListenedPlace listened;
    if (port.ok()) listened.port = *port;
    else listened.outcome = {false, std::move(port).error()};
    answer.places.push_back(std::move(listened));
  }
  if (!ports_.empty())
    timer_ = loop_.after(kLongest, [this] {
      timer_ = 0;
      close();
    });
  return answer;
}

base::Result<uint32_t> MeshListener::open(const wire::Place& place) {
  TRY_ASSIGN(os::Listener listener, os::listen_tcp({place.address, static_cast<uint16_t>(place.port)}));
  Port port;
  int fd = listener.fd.get();
  TRY_ASSIGN(port.watch, loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { accept(fd); }));
  if (base::Result<os::SocketOwners> owners = os::SocketOwners::open(listener.endpoint); !owners_ && owners.ok())
    owners_ = std::move(owners).value();
  port.fd = std::move(listener.fd);
  port.number = listener.endpoint.port;
  port.pause = std::make_unique<os::ListenerPause>(loop_);
  ports_.push_back(std::move(port));
  return listener.endpoint.port;
}

// Room for one more session: of those that have not proved the key, the oldest goes.
bool MeshListener::make_room() {
  if (sessions_.size() < most_sessions_) return true;
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    bool older = oldest == sessions_.end() || it->second->started() < oldest->second->started();
    if (!it->second->proven() && older) oldest = it;
  }
  if (oldest == sessions_.end()) return false;
  sessions_.erase(oldest);
  return true;
}

void MeshListener::accept(int listener) {
  for (int i = 0; i < os::kAcceptsPerTurn; ++i) {
    base::Result<os::Accepted> accepted = os::accept_tcp(listener);
    if (!accepted.ok()) {
      for (Port& port : ports_)
        if (port.fd.get() == listener) port.pause->begin(port.watch);
      return;
    }
    if (!accepted->fd.valid()) return;
    if (!os::trusted(owners_, *accepted) || !make_room()) continue;  // closed at once
    int fd = accepted->fd.get();
    auto session = std::make_unique<Session>(loop_, std::move(accepted->fd), key_, [this, fd] { sessions_.erase(fd); });
    if (session->start(unproven_, idle_).ok()) sessions_[fd] = std::move(session);
  }
}

void MeshListener::close_port(uint32_t number) {
  for (Port& port : ports_)
    if (port.number == number) stop(port);
  std::erase_if(ports_, [&](const Port& port) { return port.number == number; });
}

void MeshListener::stop(Port& port) {
  loop_.unwatch(port.watch);
  os::stop_listening(port.fd);
}

void MeshListener::close() {
  for (Port& port : ports_) stop(port);
  ports_.clear();
  sessions_.clear();
  if (timer_) loop_.cancel(timer_);
  timer_ = 0;
}

}  // namespace phalanx::agent
