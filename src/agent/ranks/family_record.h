// What an agent writes down in the run's scratch folder, for the one that comes when it is no more: which processes are its family. A
// program may overwrite its environment and leave its session; that it was once seen below the agent stays true.
#pragma once

#include <string>

#include "machine/ranks/run_processes.h"

namespace phalanx::agent {

// Called by the agent. folder: the scratch folder. What cannot be written is left out.
class FamilyRecord {
 public:
  // cgroup: of the ranks (machine/own_cgroup.h), or empty.
  void write(const std::string& folder, const std::string& cgroup);

 private:
  std::string written_;
};

// All that agents of this run have left on this machine in folders of this user (agent/scratch.h).
machine::RunEvidence read_family_records(const std::string& run_id);

}  // namespace phalanx::agent
