// What ssh offers a far shell of this environment (SendEnv in the user's configuration). Only ssh can read that configuration (Host, Match,
// Include), which takes it as long as a start: so it is asked once for each connection that is kept, beside a start, and the answer lies
// beside the connection's socket. A changed configuration leads to another connection (network_place.h); what has changed in a file that
// it includes, or in what its `Match exec` looks at, counts from the next connection on.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx::hosts {

struct Offered {
  bool known = false;                                        // ssh has been asked
  std::optional<std::vector<std::string>> environment = {};  // "K=V"; nothing: its configuration says what only ssh itself does
};
// Of this environment, over the connection with that socket.
Offered offered_environment(const std::string& socket);
// Asks ssh, in a process of its own. arguments: those of the ssh that is started meanwhile, which is the first.
void learn_environment(const std::string& socket, std::vector<std::string> arguments);
void forget_environment(const std::string& socket);
// Of all connections in a folder whose sockets are gone.
void forget_ended(const std::string& folder);

}  // namespace phalanx::hosts
