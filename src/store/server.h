// The key–value server that PyTorch workers meet at, inside somebody's event loop: one thread, no locks, no blocking.
//
// Who may use it: connections from allowed addresses, and of those from this machine only the ones of this user, of root, and of users that
// admits_user names (os/socket_owner.h); a connection of another local user is closed before a byte of it is read. A connection from
// elsewhere may only prove itself (wire/challenge.h): "PHLX" and a nonce, then, after the server's nonce and proof, its own proof. It is
// answered "OK\n", its address is allowed from then on, and it is closed. Anything else from there, too many of them at once, or ten
// seconds without a word, and it is dropped. So an agent allows its host by checking that it can reach the port.
//
// A client that breaks the protocol, reads too slowly for what it asks, or no longer fits into the memory bounds is dropped and
// counted; nobody else notices. Clients that are idle cost a descriptor and no work.
//
// Lifetime: the loop outlives the server. Callbacks must neither destroy nor clear() the server. SIGPIPE must be ignored.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/listener_pause.h"
#include "os/loop.h"
#include "os/net.h"
#include "os/socket_owner.h"
#include "store/protocol.h"
#include "store/table.h"

namespace phalanx::store {

struct ServerOptions {
  std::string key;  // wire::kKeyBytes bytes, for wire::Purpose::kStore
  // Asked about a local user other than this one and root; empty: none is admitted. Must not block.
  std::function<bool(uid_t)> admits_user;
  bool allow_everybody = false;  // no filter by address
  size_t max_connections = 65'536;
  size_t max_unproven = 256;  // at once, from addresses not allowed; one more, and the oldest is dropped
  std::chrono::milliseconds unproven_deadline{10'000};
  Limits limits;                    // of one request
  size_t max_table = 256 << 20;     // bytes: keys and values
  size_t max_unparsed = 256 << 20;  // requests that have not arrived whole, of all clients together
  size_t max_unsent = 64 << 20;     // answers one client has not read yet
  size_t max_unsent_total = 256 << 20;
};

// A connection from an allowed address that was no probe.
struct Peer {
  os::Endpoint endpoint;
  os::Mono since;
  os::Mono until;  // of one that is gone
  bool connected = true;
  Dialect dialect = Dialect::kUnknown;  // unknown until it says something; a legacy client's second connection never does
  uint32_t pid = 0;                     // as the client knows itself; PyTorch from about 2.4 on says so in its PING, else 0
  uint64_t requests = 0;
};

struct Counters {
  uint64_t accepted = 0;
  uint64_t probes = 0;      // that proved the key
  uint64_t foreign = 0;     // of another user of this machine; also counted as refused
  uint64_t refused = 0;     // not allowed, or too many
  uint64_t bad_frames = 0;  // dropped for what they sent
  uint64_t over_limit = 0;  // dropped for memory: the table, unparsed requests, unread answers
  uint64_t requests = 0;
  size_t connected = 0;  // now
  size_t waiting = 0;    // now, in a WAIT
  size_t keys = 0;       // now
  size_t bytes = 0;      // now, in the table
};

class Server : private Outbox {
 public:
  // Serves on a listener that is already bound, so the port is taken before any rank starts. Error: the key has another size, or (kUnfit)
  // the users of local connections cannot be known here.
  static base::Result<std::unique_ptr<Server>> start(os::Loop& loop, os::Listener listener, ServerOptions options);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const os::Endpoint& endpoint() const { return listener_.endpoint; }
  void allow(const std::string& address);  // numeric, as in os::Endpoint
  bool allowed(const std::string& address) const;

  // For a new attempt: drops every client and every key, and forgets the peers. Allowed addresses, port and totals stay.
  void clear();

  // Everyone since the start or the last clear(), in order of arrival; the first 131072 of them.
  std::vector<Peer> peers() const;
  Counters counters() const;
  // Called when a client's first request has been served.
  void on_first_request(std::function<void(const Peer&)> callback) { first_request_ = std::move(callback); }

 private:
  struct Connection;
  Server(os::Loop& loop, os::Listener listener, ServerOptions options, os::SocketOwners owners);
  // Who may come in (server.cc).
  void accept_some();
  void take_in(os::Accepted accepted);
  bool admit(Connection& connection);
  bool trusted(const os::Accepted& accepted);
  bool make_room();
  bool challenge(Connection& connection, std::string_view nonce);
  bool prove(Connection& connection, std::string_view proof);
  void close(Connection& connection);
  // What is said (server_io.cc).
  void on_event(ClientId id, uint32_t events);
  void read(Connection& connection);
  void serve(Connection& connection, std::string_view bytes);
  bool serve_next(Connection& connection, std::string_view& bytes);
  bool keep_unparsed(Connection& connection, std::string_view rest);
  std::string* room(ClientId client, size_t bytes) override;
  void deliver();
  bool send(Connection& connection, std::string_view fresh);
  void watch_for(Connection& connection);
  void drop(Connection& connection);

  os::Loop& loop_;
  os::Listener listener_;
  ServerOptions options_;
  os::ListenerPause pause_;
  os::SocketOwners owners_;
  Table table_;
  os::WatchId listener_watch_ = 0;
  std::set<std::string, std::less<>> allowed_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by ClientId; null where free
  std::vector<ClientId> free_ids_;
  std::vector<Peer> peers_;
  Counters counters_;
  std::map<uint64_t, ClientId> unproven_;  // by arrival
  uint64_t arrivals_ = 0;
  size_t unparsed_ = 0;
  size_t unsent_ = 0;
  // Of the event being handled:
  Connection* current_ = nullptr;
  std::string answer_;                // what the current client is to be sent
  std::vector<ClientId> to_deliver_;  // the others that are to be sent something
  size_t newcomer_ = 0;               // whose first request was served, in peers_
  Op op_;
  std::vector<char> scratch_;  // what was just read
  std::function<void(const Peer&)> first_request_;
};

}  // namespace phalanx::store
