// Where this process looks hosts up and reaches them from. The same name means another machine in another network namespace (containers
// that share a home directory), after a reboot of a virtual machine that was copied, or once /etc/hosts or ~/.ssh/config say otherwise.
#pragma once

#include <string>

namespace phalanx::hosts {

// Equal for two processes only if a name leads both to the same machine, as far as this machine decides it. An address that a name server
// has changed is not seen: a connection that is in use keeps leading to the machine it was made to.
std::string network_place();

}  // namespace phalanx::hosts
