// Commands that do once more what a run did, made from its record: for `phalanx inspect`. They hold what was recorded and nothing else:
// values of variables that were passed on are not, so --export takes them from the shell in which the command is typed.
#pragma once

#include <string>
#include <vector>

#include "cli/records/run_events.h"
#include "job/supervisor/supervisor.h"
#include "logs/runs/run_list.h"

namespace phalanx::cli {

// "cd /data/llm && phalanx run -H h1:2,h2:2 --export WANDB_API_KEY -- python train.py": the same ranks on the same hosts. Where --sync
// had copied the code, its own directory is copied again. "": the record does not say enough, or is another user's.
std::string run_again(const logs::Run& run, const job::State& planned, const std::vector<RunEvent>& events);

// "phalanx exec -H h2 -C /data/llm -- env RANK=3 … python train.py": one rank on its host with its variables; rank 0 of several serves
// the store where the others look for it. "" as above.
std::string rank_again(const logs::Run& run, const job::State& planned, int rank);

}  // namespace phalanx::cli
