// The loop of a fine-tuning: steps, lines, checkpoints, and the files at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/owner.h"
#include "engine/comm/group.h"
#include "engine/finetune/bar.h"
#include "engine/finetune/checkpoints.h"
#include "engine/finetune/output.h"
#include "engine/tuning/fine_tuning.h"
#include "engine/tuning/load_decoder.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

struct Training {
  tune::Recipe recipe;
  Tuned tuned;
  tuning::HollowDecoder hollow;  // stage 3: the decoder has no values yet, but those of its files
  std::vector<tuning::TuningRow> rows, evaluated;
  int threads = 1;              // of this rank, to tell people
  checkpoint::Attempt attempt;  // of the launcher's run
  std::string token;            // by which rank 0 owns recipe.output_dir
};

// `start`: the checkpoint to continue, or none; only rank 0's counts. Rank 0 writes the files of recipe.output_dir. 0, or the signal that
// stopped the run after a step and a saved checkpoint: SIGTERM where another rank got it.
base::Result<int> train(Training training, const std::optional<std::string>& start, comm::Group& group, Bar& bar);

}  // namespace phalanx::engine::finetune
