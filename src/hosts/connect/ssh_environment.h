// What ssh offers a far shell of this environment (SendEnv in the user's configuration). Only ssh can read that configuration (Host, Match,
// Include), which takes it as long as a start: so it is asked once for a connection that is kept, beside a start, and the answer lies
// beside the connection's socket until the configuration changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx::hosts {

// What says that the configuration of ssh has not changed: its two files, and the folders that they usually include.
std::string ssh_configuration();
// "K=V" of this environment that ssh offers over the connection with that socket. Nothing: not known yet, or not known any more.
std::optional<std::vector<std::string>> offered_environment(const std::string& socket, const std::string& configuration);
void forget_environment(const std::string& socket);
// Asks ssh for it, in a process of its own. arguments: those of an ssh to the host, its name included, without a command.
void learn_environment(const std::string& socket, const std::string& configuration, std::vector<std::string> arguments);

}  // namespace phalanx::hosts
