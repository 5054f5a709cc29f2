// Contents of a list that are not those of the files it was made from: an environment is sent as it will be at another place
// (envmove/carry/carry.h). They lie one after the other in one file without a name, which goes with its last descriptor.
#pragma once

#include <string>
#include <unordered_map>

#include "os/fd.h"

namespace phalanx::sync {

struct Aside {
  os::Fd file;
  std::unordered_map<std::string, uint64_t> at;  // SHA-256 of a content, 32 bytes: where it begins
};

}  // namespace phalanx::sync
