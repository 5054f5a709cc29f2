// --sync: the working directory, or the one that was named, is copied to every host before the run, and the ranks start in the copies.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/flags/run_options.h"
#include "job/copy/copy_to_hosts.h"

namespace phalanx::cli {

struct SyncedCode {
  std::string name;  // of the copies; empty: nothing was copied
  std::string root;  // the directory on this machine
  std::string path;  // of the copy, the same on every host
  size_t files = 0;  // in the directory
  uint64_t bytes = 0;
  std::vector<job::CopiedHost> hosts;
  std::vector<hosts::Target> targets;  // that have a copy
};

// Copies to all hosts of the job and to its spares, says so on standard error, and makes the copy the job's directory. A spare that cannot
// have it is left out; it takes the place of a host that cannot be reached. Error: a host has no copy.
base::Result<SyncedCode> sync_code(job::Job& job, const RunOptions& options);

// For what only looks (plan, check): what a run would copy is read and counted as for a run, and named in job.to_copy; nothing is sent to a
// host, and the job's directory stays. Says so on standard error. Error: as of a run, where this machine alone can tell.
base::Status plan_code(job::Job& job, const RunOptions& options);

// After the run: copies that nobody wrote into are given back on their hosts. Says where the others lie.
void release_code(const SyncedCode& code, const RunOptions& options);

base::Json describe(const SyncedCode& code);

}  // namespace phalanx::cli
