// Which user of this machine is at the other end of a TCP connection. TCP has no SO_PEERCRED, but the kernel knows the owner of every
// socket: it is asked for the one socket that has the connection's two endpoints the other way round (NETLINK_SOCK_DIAG), or, on a kernel
// without that, it is looked up in /proc/net/tcp and tcp6.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "os/fd.h"
#include "os/net.h"

namespace phalanx::os {

struct PeerOwner {
  enum Kind {
    kElsewhere,  // the peer's address is of another machine, or of another network namespace
    kUser,       // a process of `uid` on this machine
    kGone,       // an address of this machine, and no process holds that socket any more. The kernel shows such a socket as root's
    kUnknown,    // an address of this machine, and the kernel does not answer
  } kind = kUnknown;
  uid_t uid = 0;  // of kUser, as this process's user namespace shows it

  // This user, root, or a peer on another machine.
  bool trusted() const;
};

class SocketOwners {
 public:
  enum class Way { kBest, kTables };  // kTables: /proc alone
  // `listener`: an endpoint that this machine listens on now; by it the ways to ask are tried. Error (kUnfit): neither works, so every
  // local peer would be kUnknown.
  static base::Result<SocketOwners> open(const Endpoint& listener, Way way = Way::kBest);
  // Of a connection that was accepted: its peer, and its own end.
  PeerOwner of(const Endpoint& peer, const Endpoint& own) const;

 private:
  Fd netlink_;  // invalid: /proc is read instead
};

// Of a connection that a listener has accepted. No owners: this machine does not tell, and everyone is.
bool trusted(const std::optional<SocketOwners>& owners, const Accepted& accepted);

}  // namespace phalanx::os
