// What the ranks of a job are to run, and with which environment: one object, from the command line to the agent that starts them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace phalanx::wire {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct JobSpec {
  std::vector<std::string> argv;   // empty: no command was given
  std::string directory;           // working directory of the ranks
  Variables set;                   // for every rank: by --env, --env-file, exported
  std::vector<std::string> unset;  // glob patterns, removed from the host's own environment first
  std::string path_prefix;         // put in front of the host's PATH if it is a folder there
  bool local_rank_macro = false;   // ${local_rank} in argv stands for the number of the rank on its host
};

PHALANX_FIELDS(JobSpec, argv, directory, set, unset, path_prefix, local_rank_macro);

}  // namespace phalanx::wire
