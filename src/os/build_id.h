// The identity of this binary's content.
#pragma once

#include <string>

namespace phalanx::os {

// The linker's build id of the running program (a hash of its content), as hex; "unidentified" if it was linked without one.
std::string build_id();

}  // namespace phalanx::os
