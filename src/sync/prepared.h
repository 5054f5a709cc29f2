// What phalanx-env answers the launcher that is about to send an environment: the list of its files as they will be on the hosts, and which
// contents lie aside (docs/formats/prepared-environment.md). A file passed from one program of this machine to another; decode() checks it
// like what comes from elsewhere.
#pragma once

#include <string>
#include <unordered_map>

#include "base/result.h"
#include "sync/manifest.h"

namespace phalanx::sync {

struct Prepared {
  std::string root;                                 // of the environment, absolute
  std::string to;                                   // on the hosts, absolute
  uint32_t mode = 0;                                // of its folder
  Manifest manifest;                                // with modes
  std::unordered_map<std::string, uint64_t> aside;  // as in Aside
};

std::string encode(const Prepared& prepared);
// Error kInternal: malformed, or of another version.
base::Result<Prepared> decode_prepared(std::string_view bytes);

}  // namespace phalanx::sync
