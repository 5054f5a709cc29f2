#include "store/server.h"

#include <algorithm>

#include "base/try.h"
#include "store/connection.h"
#include "wire/challenge.h"

namespace phalanx::store {
namespace {

constexpr size_t kReadSize = 64 << 10;
constexpr size_t kMaxPeers = 128 << 10;

}  // namespace

Server::Server(os::Loop& loop, os::Listener listener, ServerOptions options, os::SocketOwners owners)
    : loop_(loop),
      listener_(std::move(listener)),
      options_(std::move(options)),
      pause_(loop),
      owners_(std::move(owners)),
      table_(options_.max_table),
      scratch_(kReadSize) {}

base::Result<std::unique_ptr<Server>> Server::start(os::Loop& loop, os::Listener listener, ServerOptions options) {
  if (options.key.size() != wire::kKeyBytes) return base::fail(base::ErrorKind::kInternal, "the key of the store is not 32 bytes long");
  TRY_ASSIGN(os::SocketOwners owners, os::SocketOwners::open(listener.endpoint));
  std::unique_ptr<Server> server(new Server(loop, std::move(listener), std::move(options), std::move(owners)));
  Server* self = server.get();
  TRY_ASSIGN(server->listener_watch_, loop.watch(server->listener_.fd.get(), EPOLLIN, [self](uint32_t) { self->accept_some(); }));
  return server;
}

Server::~Server() {
  clear();
  loop_.unwatch(listener_watch_);
  os::stop_listening(listener_.fd);
}

void Server::clear() {
  for (auto& connection : connections_) {
    if (connection) close(*connection);
  }
  table_.clear();
  peers_.clear();
}

void Server::allow(const std::string& address) { allowed_.insert(address); }
bool Server::allowed(const std::string& address) const { return options_.allow_everybody || allowed_.contains(address); }
std::vector<Peer> Server::peers() const {
  std::vector<Peer> out;
  std::copy_if(peers_.begin(), peers_.end(), std::back_inserter(out), [](const Peer& peer) { return peer.dialect != Dialect::kProbe; });
  return out;
}

Counters Server::counters() const {
  Counters out = counters_;
  out.waiting = table_.waiting();
  out.keys = table_.keys();
  out.bytes = table_.bytes();
  return out;
}

void Server::accept_some() {
  for (int i = 0; i < os::kAcceptsPerTurn; ++i) {
    base::Result<os::Accepted> accepted = os::accept_tcp(listener_.fd.get());
    if (!accepted.ok()) return pause_.begin(listener_watch_);
    if (!accepted->fd.valid()) return;
    take_in(std::move(*accepted));
  }
}

// Room for one more that is to prove itself: who has not done so for longest goes. So strangers who connect and say nothing keep no agent
// out.
bool Server::make_room() {
  if (unproven_.size() < options_.max_unproven) return true;
  if (unproven_.empty()) return false;
  ++counters_.refused;
  close(*connections_[unproven_.begin()->second]);
  return true;
}

bool Server::trusted(const os::Accepted& accepted) {
  base::Result<os::Endpoint> own = os::local_endpoint(accepted.fd.get());
  if (!own.ok()) return false;
  os::PeerOwner owner = owners_.of(accepted.peer, *own);
  if (owner.trusted()) return true;
  return owner.kind == os::PeerOwner::kUser && options_.admits_user && options_.admits_user(owner.uid);
}

void Server::take_in(os::Accepted accepted) {
  ++counters_.accepted;
  if (!trusted(accepted)) {
    ++counters_.foreign;
    ++counters_.refused;
    return;
  }
  bool known = allowed(accepted.peer.address);
  if (counters_.connected >= options_.max_connections || (!known && !make_room())) {
    ++counters_.refused;
    return;
  }
  ClientId id = static_cast<ClientId>(connections_.size());
  if (free_ids_.empty()) {
    connections_.emplace_back();
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  auto connection = std::make_unique<Connection>(id, std::move(accepted), options_.limits);
  base::Result<os::WatchId> watch = loop_.watch(connection->fd.get(), EPOLLIN, [this, id](uint32_t events) { on_event(id, events); });
  if (!watch.ok()) {
    ++counters_.refused;
    free_ids_.push_back(id);
    return;
  }
  connection->watch = *watch;
  connections_[id] = std::move(connection);
  ++counters_.connected;
  connections_[id]->arrival = ++arrivals_;
  unproven_.emplace(arrivals_, id);
  if (admit(*connections_[id])) return;
  connections_[id]->deadline = loop_.after(options_.unproven_deadline, [this, id] {
    ++counters_.refused;
    close(*connections_[id]);
  });
}

// Whether the connection may use the store, by now.
bool Server::admit(Connection& connection) {
  if (connection.admitted) return true;
  if (!allowed(connection.from.address)) return false;
  connection.admitted = true;
  unproven_.erase(connection.arrival);
  loop_.cancel(connection.deadline);
  if (peers_.size() < kMaxPeers) {
    connection.peer = peers_.size();
    Peer peer;
    peer.endpoint = connection.from;
    peer.since = os::mono_now();
    peers_.push_back(std::move(peer));
  }
  return true;
}

// A probe has begun: it is answered with our half. False: it cannot be.
bool Server::challenge(Connection& connection, std::string_view nonce) {
  if (connection.peer != Connection::kNoPeer) peers_[connection.peer].dialect = Dialect::kProbe;
  base::Result<std::string> own = wire::fresh_nonce();
  if (!own.ok()) return false;
  connection.dialers_nonce = nonce;
  connection.own_nonce = std::move(own).value();
  answer_ += kProbeMagic;
  answer_ += connection.own_nonce;
  answer_ += wire::proof_of(wire::Side::kListener, options_.key, connection.dialers_nonce, connection.own_nonce);
  return true;
}

// Whether the probe holds the key. It is answered by whoever closes the connection.
bool Server::prove(Connection& connection, std::string_view proof) {
  if (!wire::proves(proof, wire::Side::kDialer, options_.key, connection.dialers_nonce, connection.own_nonce)) return false;
  allow(connection.from.address);
  return true;
}

void Server::close(Connection& connection) {
  loop_.unwatch(connection.watch);
  loop_.cancel(connection.deadline);
  table_.forget(connection.id);
  if (connection.peer != Connection::kNoPeer) {
    peers_[connection.peer].connected = false;
    peers_[connection.peer].until = os::mono_now();
  }
  if (!connection.admitted) unproven_.erase(connection.arrival);
  --counters_.connected;
  unparsed_ -= connection.unparsed.size();
  unsent_ -= connection.left_to_send();
  free_ids_.push_back(connection.id);
  connections_[connection.id].reset();
}

}  // namespace phalanx::store
