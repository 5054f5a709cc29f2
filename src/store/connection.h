// One client of store::Server, between its two source files.
#pragma once

#include <limits>
#include <string>

#include "store/server.h"

namespace phalanx::store {

struct Server::Connection {
  static constexpr size_t kNoPeer = std::numeric_limits<size_t>::max();
  Connection(ClientId client, os::Accepted accepted, const Limits& limits)
      : id(client), fd(std::move(accepted.fd)), from(std::move(accepted.peer)), parser(limits) {}
  size_t left_to_send() const { return unsent.size() - sent; }

  ClientId id;
  os::Fd fd;
  os::Endpoint from;
  Parser parser;
  os::WatchId watch = 0;
  uint32_t events = EPOLLIN;  // that are watched for
  os::TimerId deadline = 0;   // to prove itself
  uint64_t arrival = 0;       // how many came before it
  size_t peer = kNoPeer;      // its place in peers_, once admitted
  bool admitted = false;
  bool paused = false;                   // neither read nor served until it has read its answers
  bool to_deliver = false;               // it is in to_deliver_
  uint64_t* dropped_as = nullptr;        // set: to be closed as soon as nobody works on it, and counted there
  std::string dialers_nonce, own_nonce;  // of a probe
  std::string unparsed;                  // arrived, not served
  std::string unsent;                    // answered, not sent; of these bytes `sent` already are
  size_t sent = 0;
};

}  // namespace phalanx::store
