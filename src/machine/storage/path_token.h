// Same content, same token: what is compared between hosts instead of the content itself.
#pragma once

#include <cstdint>
#include <string>

#include "os/clock.h"

namespace phalanx::machine {

struct ContentToken {
  std::string token;     // 16 hex digits; empty: not found out in time, or too large a folder
  int64_t entries = -1;  // of a folder, at most 65,536
};
// File: SHA-256 of its size, first and last MiB. Folder: of its names (sorted) and of the sizes of the files among the first 1024;
// what differs between equal folders by nature is left out: names that begin with '.', *.lock, *.tmp, __pycache__, cache-* (the datasets
// library's).
ContentToken content_token(const std::string& path, os::milliseconds budget);

}  // namespace phalanx::machine
