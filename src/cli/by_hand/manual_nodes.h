// A run whose nodes were started by hand, the same line on every machine with a node rank of its own: `phalanx run --nnodes 3 --node-rank K
// --master-addr ADDRESS -- …`. Node 0's phalanx is the launcher; on the others it is the way to their agent (hosts/join/).
#pragma once

#include <memory>

#include "cli/by_hand/pod_place.h"
#include "cli/flags/run_options.h"
#include "hosts/join/joined.h"

namespace phalanx::cli {

// What the variables, the name and /etc/hosts of this machine say of a pod.
Pod this_pod();
// "phalanx: this pod is node 1 of 4: …", on standard error.
void tell_pod_place(const RunOptions& options);

// Of --token-file, else PHALANX_TOKEN, else the file "token" in phalanx's configuration folder, which is made, 0600, if it is missing. The
// variable is taken out of the environment. Error kConfig: others may read the file, or the token is too short to be safe.
base::Result<std::string> shared_token(const RunOptions& options);

// Waits for the other nodes. Error: kUsage, kTimeout, kUnreachable, kInterrupted (hosts/join/gather.h).
base::Result<std::unique_ptr<hosts::JoinedNodes>> gather_nodes(const RunOptions& options);

// The hosts of the job, behind this one.
void add_joined(const hosts::JoinedNodes& joined, job::Job& job);
hosts::JoinVerdict verdict_for_nodes(const base::Result<int>& code);

// On a node other than 0: takes part to the end of the run. The exit code is the run's.
base::Result<int> take_part(const RunOptions& options);

}  // namespace phalanx::cli
