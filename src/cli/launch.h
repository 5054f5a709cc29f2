// What every verb that logs in to hosts does: a token, a transport per host, and the runner's loop.
#pragma once

#include "cli/flags/run_options.h"
#include "hosts/join/joined.h"
#include "job/copy/copy_to_hosts.h"
#include "job/runner.h"
#include "job/sweep.h"

namespace phalanx::cli {

// Gives the job its token and runs it to its end.
// joined: the nodes of a run that was started by hand (cli/by_hand/manual_nodes.h), else null.
base::Result<job::Verdict> run_on_hosts(job::Runner& runner, job::Job job, const RunOptions& options, hosts::JoinedNodes* joined = nullptr);

// What a run has left on its hosts, looked for by new logins (job/sweep.h). options: of ssh and of the opening.
base::Result<std::vector<job::SweptHost>> sweep_hosts(os::Loop& loop, const std::vector<hosts::Target>& hosts, const RunOptions& options,
                                                      job::SweepRequest wish);

// Copies a folder to hosts, or gives copies back (job/copy/copy_to_hosts.h), in a loop of its own.
base::Result<std::vector<job::CopiedHost>> copy_to_hosts(const std::vector<hosts::Target>& hosts, const RunOptions& options,
                                                         job::CopyRequest request);

}  // namespace phalanx::cli
