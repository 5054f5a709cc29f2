#include "agent/copy_link.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"

namespace phalanx::agent {

using base::ErrorKind;

CopyInlet::~CopyInlet() {
  stop_listening();
  loop_.cancel(sweep_);
}

base::Result<uint16_t> CopyInlet::listen(const std::string& address, const std::string& key) {
  if (key.size() != wire::kKeyBytes) return base::fail(ErrorKind::kInternal, "a malformed request for a copy");
  key_ = key;
  TRY_ASSIGN(os::Listener listener, os::listen_tcp({address, 0}));
  TRY_ASSIGN(watch_, loop_.watch(listener.fd.get(), EPOLLIN, [this](uint32_t) { accept(); }));
  if (base::Result<os::SocketOwners> owners = os::SocketOwners::open(listener.endpoint); owners.ok()) owners_ = std::move(owners).value();
  listener_ = std::move(listener.fd);
  pause_ = std::make_unique<os::ListenerPause>(loop_);
  reader_.feed(wire::kStreamMagic);
  waits_ = loop_.after(kWaits, [this] {
    waits_ = 0;
    stop_listening();
    finish();
  });
  return listener.endpoint.port;
}

void CopyInlet::accept() {
  for (int i = 0; i < os::kAcceptsPerTurn; ++i) {
    base::Result<os::Accepted> accepted = os::accept_tcp(listener_.get());
    if (!accepted.ok()) return pause_->begin(watch_);
    if (!accepted->fd.valid()) return;
    base::Result<std::string> nonce = wire::fresh_nonce();
    if (!nonce.ok() || !os::trusted(owners_, *accepted)) continue;  // closed at once
    if (peers_.size() >= kMostUnproven) peers_.erase(peers_.begin());
    peers_.push_back(std::make_unique<Peer>());
    Peer* peer = peers_.back().get();
    peer->socket = std::make_unique<wire::SealedSocket>(
        loop_, std::move(accepted->fd), wire::SealedStream(wire::Side::kListener, key_, std::move(*nonce)),
        wire::SealedSocket::Handlers{.open = [this, peer] { proved(peer); },
                                     .record = [this, peer](const wire::Record& record) { take(peer, record); },
                                     .end = [this, peer](ErrorKind, const std::string&) { lost(peer); }});
    peer->socket->begin();
  }
}

// The sockets must outlive their own calls: what is over goes from a turn of its own.
void CopyInlet::sweep() {
  if (sweep_) return;
  sweep_ = loop_.after(os::nanoseconds(0), [this] {
    sweep_ = 0;
    std::erase_if(peers_, [](const std::unique_ptr<Peer>& peer) { return peer->over; });
  });
}

void CopyInlet::proved(Peer* peer) {
  if (linked_ || over_) return lost(peer);
  linked_ = true;
  stop_listening();
  for (std::unique_ptr<Peer>& other : peers_)
    if (other.get() != peer) other->over = true;
  sweep();
}

void CopyInlet::take(Peer* peer, const wire::Record& record) {
  if (peer->over || over_) return;
  bool good = record.type == wire::RecordType::kData;
  if (good) reader_.feed(record.payload);
  while (good && !over_) {
    base::Result<std::optional<wire::Frame>> frame = reader_.next();
    if (frame.ok() && !frame->has_value()) break;
    good = frame.ok() && ((*frame)->type == wire::FrameType::kCopyBytes || (*frame)->type == wire::FrameType::kCopyPacked);
    if (good) good = handlers_.frame(**frame);
  }
  if (!good) lost(peer);
}

void CopyInlet::lost(Peer* peer) {
  if (peer->over) return;
  peer->over = true;
  sweep();
  if (linked_) finish();
}

void CopyInlet::finish() {
  if (over_) return;
  over_ = true;
  handlers_.end();
}

void CopyInlet::stop_listening() {
  loop_.cancel(waits_);
  waits_ = 0;
  if (!listener_.valid()) return;
  pause_.reset();
  loop_.unwatch(watch_);
  os::stop_listening(listener_);
}

CopyOutlet::~CopyOutlet() {
  if (watch_) loop_.unwatch(watch_);
  loop_.cancel(patience_);
}

void CopyOutlet::dial(const os::Endpoint& where, const std::string& key, std::function<void(base::Status)> dialed) {
  dialed_ = std::move(dialed);
  if (key.size() != wire::kKeyBytes) return decide(base::fail(ErrorKind::kInternal, "a malformed request for a copy"));
  base::Result<os::Fd> socket = os::connect_tcp_start(where);
  if (!socket.ok()) return decide(std::move(socket).error());
  connecting_ = std::move(*socket);
  base::Result<os::WatchId> watch = loop_.watch(connecting_.get(), EPOLLOUT, [this, key](uint32_t) { connected(key); });
  if (!watch.ok()) return decide(std::move(watch).error());
  watch_ = *watch;
  patience_ = loop_.after(kPatience, [this] {
    patience_ = 0;
    decide(base::fail(ErrorKind::kUnreachable, "no answer in time"));
  });
}

void CopyOutlet::connected(const std::string& key) {
  loop_.unwatch(watch_);
  watch_ = 0;
  if (const int error_number = os::connect_outcome(connecting_.get()))
    return decide(base::fail(ErrorKind::kUnreachable, std::strerror(error_number)));
  base::Result<std::string> nonce = wire::fresh_nonce();
  if (!nonce.ok()) return decide(std::move(nonce).error());
  socket_ =
      std::make_unique<wire::SealedSocket>(loop_, std::move(connecting_), wire::SealedStream(wire::Side::kDialer, key, std::move(*nonce)),
                                           wire::SealedSocket::Handlers{.open = [this] { decide(base::ok()); },
                                                                        .record = [](const wire::Record&) {},
                                                                        .end =
                                                                            [this](ErrorKind kind, const std::string& why) {
                                                                              linked_ = false;
                                                                              decide(base::fail(kind, why));
                                                                            }});
  socket_->begin();
}

void CopyOutlet::decide(base::Status status) {
  loop_.cancel(patience_);
  patience_ = 0;
  if (!dialed_) return;
  linked_ = status.ok();
  auto dialed = std::move(dialed_);
  dialed_ = nullptr;
  dialed(std::move(status));
}

void CopyOutlet::pass_on(const wire::Frame& frame) {
  if (!linked_) return;
  std::string record;
  if (!wire::put_frame(record, frame.type, frame.payload).ok() || record.size() > wire::kMostRecordBytes ||
      socket_->pending() + record.size() > kMostWaiting) {
    linked_ = false;
    socket_.reset();  // the other side notices
    return;
  }
  socket_->send(wire::RecordType::kData, record);
}

}  // namespace phalanx::agent
