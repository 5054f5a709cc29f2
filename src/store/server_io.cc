// The part of Server that talks with its clients. One event of one client is: read once, serve every whole request that is
// there, send this client's answers with one write, then send what others have been waiting for. Nobody is closed while
// the table or a loop over clients is at work; what has to go is marked (dropped_as) and closed afterwards.
#include <algorithm>

#include "store/connection.h"
#include "store/server.h"

namespace phalanx::store {
namespace {

constexpr size_t kPauseAt = 1 << 20;  // bytes a client may leave unread before it is served no further

}  // namespace

void Server::on_event(ClientId id, uint32_t events) {
  Connection& connection = *connections_[id];
  if (events & EPOLLOUT) {
    if (!send(connection, {})) return close(connection);
    if (connection.paused && connection.left_to_send() < kPauseAt) {
      connection.paused = false;
      return serve(connection, connection.unparsed);
    }
    watch_for(connection);
  } else if (events & EPOLLIN) {
    read(connection);
  } else {
    close(connection);  // EPOLLHUP, EPOLLERR
  }
}

void Server::read(Connection& connection) {
  os::IoStep step = os::read_step(connection.fd.get(), scratch_.data(), scratch_.size());
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return close(connection);
  std::string_view fresh(scratch_.data(), step.bytes);
  if (connection.unparsed.empty()) return serve(connection, fresh);
  connection.unparsed.append(fresh);
  unparsed_ += fresh.size();
  serve(connection, connection.unparsed);
}

// `bytes` are the connection's unparsed bytes, or what was just read if there were none.
void Server::serve(Connection& connection, std::string_view bytes) {
  current_ = &connection;
  answer_.clear();
  newcomer_ = Connection::kNoPeer;
  while (serve_next(connection, bytes)) {}
  current_ = nullptr;
  if (!connection.dropped_as && !keep_unparsed(connection, bytes)) connection.dropped_as = &counters_.over_limit;
  bool open = send(connection, answer_) && !connection.dropped_as;
  if (answer_.capacity() > kPauseAt) answer_ = {};
  if (open) watch_for(connection);
  else drop(connection);
  deliver();
  if (newcomer_ != Connection::kNoPeer && first_request_) first_request_(peers_[newcomer_]);
}

// Serves one request and takes it off `bytes`. False when that is all for now.
bool Server::serve_next(Connection& connection, std::string_view& bytes) {
  if (connection.left_to_send() + answer_.size() >= kPauseAt) {
    connection.paused = true;
    return false;
  }
  Parser::Step step = connection.parser.next(bytes, op_);
  Dialect dialect = connection.parser.dialect();
  bool stranger = dialect != Dialect::kUnknown && dialect != Dialect::kProbe && !admit(connection);
  if (stranger || step.kind == Parser::Step::kBad) connection.dropped_as = stranger ? &counters_.refused : &counters_.bad_frames;
  if (stranger || step.kind != Parser::Step::kOp) return false;
  bytes.remove_prefix(step.consumed);
  if (op_.code == OpCode::kProbe) {
    if (!challenge(connection, op_.parts[0])) connection.dropped_as = &counters_.refused;
    return !connection.dropped_as;
  }
  if (op_.code == OpCode::kProof) {
    bool proven = prove(connection, op_.parts[0]);
    if (proven) answer_ = kProbeAnswer;
    connection.dropped_as = proven ? &counters_.probes : &counters_.bad_frames;
    return false;
  }
  ++counters_.requests;
  if (connection.peer != Connection::kNoPeer) {
    Peer& peer = peers_[connection.peer];
    if (++peer.requests == 1) newcomer_ = connection.peer;
    peer.dialect = dialect;
    if (op_.code == OpCode::kPing) peer.pid = static_cast<uint32_t>(op_.number);
  }
  // A legacy client has no CANCEL_WAIT: when its wait times out it just goes on, and must not be answered any more.
  if (dialect == Dialect::kLegacy) table_.stop_waiting(connection.id);
  Table::Outcome outcome = table_.apply(connection.id, op_, *this);
  if (outcome == Table::Outcome::kFull) connection.dropped_as = &counters_.over_limit;
  if (outcome == Table::Outcome::kNotANumber) connection.dropped_as = &counters_.bad_frames;
  return !connection.dropped_as;
}

// False when all clients' unparsed bytes together are too many.
bool Server::keep_unparsed(Connection& connection, std::string_view rest) {
  std::string& kept = connection.unparsed;
  unparsed_ -= kept.size();
  if (rest.empty()) {
    if (kept.capacity() > 4096) kept = {};
    else kept.clear();
  } else if (kept.empty()) {
    kept = rest;
  } else {
    kept.erase(0, kept.size() - rest.size());
  }
  unparsed_ += kept.size();
  return unparsed_ <= options_.max_unparsed;
}

std::string* Server::room(ClientId client, size_t bytes) {
  Connection& connection = *connections_[client];
  if (connection.dropped_as) return nullptr;
  bool is_current = &connection == current_;
  if (!is_current && !connection.to_deliver) {
    connection.to_deliver = true;
    to_deliver_.push_back(client);
  }
  size_t mine = connection.left_to_send() + (is_current ? answer_.size() : 0) + bytes;
  if (mine > options_.max_unsent || unsent_ + answer_.size() + bytes > options_.max_unsent_total) {
    connection.dropped_as = &counters_.over_limit;
    return nullptr;
  }
  if (is_current) return &answer_;
  unsent_ += bytes;
  return &connection.unsent;
}

void Server::deliver() {
  for (ClientId id : to_deliver_) {
    Connection& connection = *connections_[id];
    connection.to_deliver = false;
    if (!send(connection, {}) || connection.dropped_as) drop(connection);
    else watch_for(connection);
  }
  to_deliver_.clear();
}

// Sends what is left and then `fresh`; what the socket does not take now is kept. False when the client is gone.
bool Server::send(Connection& connection, std::string_view fresh) {
  bool keep = connection.left_to_send() > 0;
  std::string_view bytes = fresh;
  if (keep) {
    connection.unsent.append(fresh);
    unsent_ += fresh.size();
    bytes = std::string_view(connection.unsent).substr(connection.sent);
  }
  if (bytes.empty()) return true;
  os::IoStep step = os::write_step(connection.fd.get(), bytes.data(), bytes.size());
  if (step.kind == os::IoStep::kEnd || step.kind == os::IoStep::kError) return false;
  if (!keep) {
    connection.unsent = bytes.substr(step.bytes);
    unsent_ += connection.unsent.size();
    return true;
  }
  connection.sent += step.bytes;
  unsent_ -= step.bytes;
  if (connection.left_to_send() == 0) {
    if (connection.unsent.capacity() > 4096) connection.unsent = {};
    else connection.unsent.clear();
    connection.sent = 0;
  } else if (connection.sent > connection.unsent.size() / 2) {
    connection.unsent.erase(0, connection.sent);
    connection.sent = 0;
  }
  return true;
}

void Server::watch_for(Connection& connection) {
  uint32_t events = connection.paused ? 0u : EPOLLIN;
  if (connection.paused || connection.left_to_send() > 0) events |= EPOLLOUT;
  if (events == connection.events) return;
  connection.events = events;
  loop_.rewatch(connection.watch, events);
}

void Server::drop(Connection& connection) {
  if (connection.dropped_as) ++*connection.dropped_as;
  close(connection);
}

}  // namespace phalanx::store
