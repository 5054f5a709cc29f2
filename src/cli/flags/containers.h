// The containers of a job's hosts, from --container and --container-args.
#pragma once

#include "cli/flags/run_options.h"

namespace phalanx::cli {

// A wish for a host wins over one for all. Errors: kUsage: a host that the job does not have, two wishes for one host, arguments without a
// container, a directory that an engine cannot mount, --sync into a container that ends with the run.
base::Status put_in_containers(const RunOptions& options, job::Job& job);

}  // namespace phalanx::cli
