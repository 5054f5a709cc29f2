// The process that makes a cluster and outlives its owner by as long as removal takes. Its own network namespace is the switch
// all hosts are plugged into; it is the parent of every host's pid 1, which dies with it (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include "cluster.h"

namespace phalanx::testbed {

// Forks the guard and waits until the hosts are up or it says why not. options.name and options.owner are set.
base::Status start_guard(const Options& options);

}  // namespace phalanx::testbed
