// Checkpoints of a fine-tuning, <output_dir>/checkpoint-<step>: what write_tuned writes, trainer_state.json, and
// phalanx_state.safetensors, from which a run continues bit for bit: the trained parameters and AdamW's means, all fp32, by name.
// A folder of such a name is whole: it is written as .saving-checkpoint-<step>.<token>, synced and renamed.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/checkpoint/owner.h"
#include "engine/finetune/history.h"
#include "engine/finetune/output.h"

namespace phalanx::engine::finetune {

// Of what the order of rows and the loss depend on: a checkpoint of other data must not be continued. The same for W ranks and for one
// with W times the accumulation.
uint64_t fingerprint(const tune::Recipe& recipe, const std::vector<tuning::TuningRow>& rows, int64_t world);

struct Checkpoints {
  std::string output_dir;
  std::string token;  // by which this attempt owns output_dir (checkpoint/owner.h)
  std::string run;    // mark_of() the launcher's run, which is in each checkpoint; empty: unknown
  uint64_t fingerprint = 0;
  bool only_model = false;       // no phalanx_state.safetensors
  std::optional<int64_t> limit;  // that are kept: the newest, and the best in the stead of the oldest of them
  bool keeps_best = false;       // it will be needed at the end: one more, if the limit is 1
};

// Collective; rank 0 writes. Error kConfig: another run has claimed output_dir meanwhile.
base::Status save(const Checkpoints& where, const Tuned& tuned, tuning::FineTuning& run, const History& history, Bar& bar);

// The newest checkpoint of a folder by its number; nothing if there is none. Error: nobody knows.
base::Result<std::optional<std::string>> newest_checkpoint(const std::string& output_dir);
// The newest that an earlier attempt of this run has saved. Others may have higher numbers: of a training that this run has left.
base::Result<std::optional<std::string>> newest_of_run(const std::string& output_dir, const checkpoint::Attempt& attempt);
base::Status remove_checkpoints(const std::string& output_dir);
base::Status remove_leftovers(const std::string& output_dir);  // what a kill left half written or half removed

// A checkpoint whose state fits a run.
struct Found {
  std::string folder;
  tuning::TensorFiles state;
  int64_t step = 0;
};
// Continues `history` after the checkpoint's step. Error kConfig: it cannot be resumed, is damaged, or is one of other data.
base::Result<Found> open_checkpoint(const std::string& folder, uint64_t fingerprint, const tuning::FineTuning& run, History& history);
// Collective: then the run, with what rank 0 found.
base::Status load_checkpoint(const Found& found, tuning::FineTuning& run);
// Collective: a checkpoint's weights, as it wrote them, and nothing else of it. Only rank 0's folder counts.
base::Status load_weights_of(const std::string& folder, bool adapter, tuning::FineTuning& run);

}  // namespace phalanx::engine::finetune
