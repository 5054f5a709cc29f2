// Folders for what nobody else may read or replace.
#pragma once

#include <string>

namespace cluster {

// Makes it if it is missing. True: a folder, no link, owned by us, 0700.
bool private_folder(const std::string& path);

}  // namespace cluster
