#include <cstdio>

#include "cli/flags/verbs.h"
#include "os/build_id.h"

namespace phalanx::cli {

base::Result<int> version_verb(const Invocation&) {
  std::printf("phalanx %s (build %s)\n", PHALANX_VERSION, os::build_id().c_str());
  return 0;
}

}  // namespace phalanx::cli
