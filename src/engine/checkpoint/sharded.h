// One checkpoint written by all ranks together, without a collective. docs/formats/checkpoint.md has the files and the order.
//
// Every rank writes its shard and then its record into the same unfinished folder. One rank also finishes: it waits for the records of
// all, writes the manifest and DONE, and gives the folder its final name, all with fsync. So a checkpoint appears whole or not at all,
// whoever dies at whatever moment. These are the steps; Saver (saver.h) runs them in the background.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/interrupt.h"
#include "engine/checkpoint/owner.h"
#include "engine/checkpoint/piece.h"
#include "engine/checkpoint/record.h"

namespace phalanx::engine::checkpoint {

// Called before each step with its name; a test stops there by throwing, as a kill would.
using StageHook = std::function<void(std::string_view stage)>;

// A save is named alike by all its ranks.
struct SaveId {
  std::string folder;    // the run's checkpoints, the same folder on every rank
  int64_t step = 0;      // optimizer steps done
  std::string token;     // of the attempt, folder.h
  int64_t sequence = 0;  // of the save within the attempt
  int world = 1;

  std::string unfinished() const { return folder + "/" + saving_name(step, token, sequence); }
  std::string name() const;  // what ShardRecord::save holds
};

struct ShardContent {
  std::vector<Piece> pieces;                // on CPU
  base::Json state = base::Json::object();  // of this rank
};

// Error: a file's, kUnfit for a full disk or missing rights; or "interrupted". The stages: "shard", "shard-sync", "record".
base::Result<FileRecord> write_shard(const SaveId& id, int rank, const ShardContent& content, const Interrupt& interrupt,
                                     const StageHook& stage = {});
// Tells the finishing rank why this rank's shard will not come. Best effort: without it the finisher waits until its deadline.
void note_failure(const SaveId& id, int rank, const base::Error& error);

struct FinishOptions {
  base::Json state = base::Json::object();             // of all ranks
  int64_t keep = 0;                                    // newest checkpoints to keep, 0 for all; the best is always kept
  std::optional<Best> best;                            // marks this one as the best
  std::chrono::milliseconds deadline{30 * 60 * 1000};  // for the other ranks' records
};
struct Finished {
  std::string path;
  std::string trouble;  // the checkpoint is saved, but what follows failed: the best mark, the removal of old ones
  Removals removals;    // what was removed, for the log
};
// By one rank, after its own shard. Error: kTimeout naming the ranks whose records never came; a rank's own failure; pieces that do
// not make whole tensors; a file's; another run owns the folder. The stages: "collect", "manifest", "done", "publish", "best", "prune".
base::Result<Finished> finish(const SaveId& id, const FinishOptions& options, const Interrupt& interrupt, const StageHook& stage = {});

}  // namespace phalanx::engine::checkpoint
