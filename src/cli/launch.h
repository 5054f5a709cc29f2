// What every verb that logs in to hosts does: a token, a transport per host, and the runner's loop.
#pragma once

#include "cli/run_options.h"
#include "job/runner.h"

namespace cli {

// Gives the job its token and runs it to its end.
base::Result<job::Verdict> run_on_hosts(job::Runner& runner, job::Job job, const RunOptions& options);

}  // namespace cli
