// The shared ssh connections that starts have left open for the next one (openssh.h), and their end.
#pragma once

#include <string>
#include <vector>

namespace phalanx::hosts {

// Sockets of this user in the folder of shared connections, by path. Only what control_folder() and openssh.cc make is listed.
std::vector<std::string> kept_connections();
// The connection takes no further session and ends with its last one, so a run that uses it is not disturbed. program: ssh. A socket that
// nobody serves is removed. False: it is still there.
bool close_kept_connection(const std::string& program, const std::string& socket);

}  // namespace phalanx::hosts
