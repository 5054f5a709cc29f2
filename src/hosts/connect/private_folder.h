// Folders for what nobody else may read or replace.
#pragma once

#include <string>

namespace phalanx::hosts {

// Makes it if it is missing. True: a folder, no link, owned by us, 0700, and nobody but us and root can put another in its place: no
// folder above it belongs to another user, or is writable for others without the sticky bit.
bool private_folder(const std::string& path);

}  // namespace phalanx::hosts
