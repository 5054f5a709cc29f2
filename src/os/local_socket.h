// Stream sockets named by a file, for the processes of one user on one machine.
//
// The name of such a socket has at most 107 bytes (unix(7)); a longer path goes through the folder's descriptor,
// /proc/self/fd/N/name. Sockets are non-blocking and close-on-exec.
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::os {

// Listening, mode 0600. What a dead process has left under the name is replaced.
base::Result<Fd> listen_local(const std::string& folder, const std::string& name);
// Refused (ECONNREFUSED) where the file is there and its process is not. Error kUnreachable: who listens is another user than this one or
// root; whoever can write to the folder can lay such a socket there.
base::Result<Fd> connect_local(const std::string& folder, const std::string& name);
// Accepts one connection of this user or of root (SO_PEERCRED); any other is closed. An invalid Fd: none is waiting, or it was closed.
// Error: one waits and cannot be taken, as when there are no descriptors left (listener_pause.h).
base::Result<Fd> accept_local(int listener);

// One byte that carries a descriptor (SCM_RIGHTS). False: the socket takes none, or not now.
bool send_descriptor(int socket, int fd);
// Such a byte. Invalid: none has come, or it carried nothing.
Fd receive_descriptor(int socket);

}  // namespace phalanx::os
