// A run's checkpoints: what all ranks hold is saved, and given back to any number of ranks in any parallel.mode.
//
// Where all ranks see one folder each writes its own part (checkpoint/sharded.h); where they do not, rank 0 collects and writes all
// ("gathered"). The files do not tell: either is read either way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/checkpoint/owner.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/saver.h"
#include "engine/comm/group.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/config.h"
#include "engine/train/report/progress.h"

namespace phalanx::engine::train {

class Saving {
 public:
  // Collective; so is everything here but poll(). Claims the folder for this attempt. Error: it cannot be written; checkpoint.layout is
  // sharded and the ranks do not share it; it holds checkpoints of another run and checkpoint.existing refuses them.
  static base::Result<std::unique_ptr<Saving>> open(const Config& config, comm::Group& group, Progress& progress,
                                                    const checkpoint::Attempt& attempt);

  // The newest checkpoint that can be read, into parameters and optimizer; returns its common state, null where there is none.
  // Damaged checkpoints are passed over and noted. Error: it is of another model or optimizer (kConfig); the file system failed, so
  // nobody knows which one is the newest (kUnfit).
  base::Result<base::Json> load(parallel::DataParallel& parallel, optim::Optimizer& optimizer);

  // Copies and returns, or with checkpoint.background off writes first. `state`: rank 0's is saved.
  base::Status save(parallel::DataParallel& parallel, const optim::Optimizer& optimizer, base::Json state,
                    const std::optional<checkpoint::Best>& best);
  // Notes what has been saved or has failed since. A save that failed harms no earlier one, and training goes on.
  void poll();
  // Behind the last save: waits for it; its failure is this one's.
  base::Status finish();
  int64_t saved_step() const { return asked_step_; }  // of the last save() or load(); -1: none

 private:
  Saving(const Config& config, comm::Group& group, Progress& progress) : config_(config), group_(group), progress_(progress) {}
  base::Status choose_layout(const std::string& token);
  base::Status apply_policy(const checkpoint::Attempt& attempt);
  base::Status look(std::string& path);  // rank 0's part of choose()
  base::Result<std::string> choose();    // path of what is to be loaded, "" for nothing
  base::Status read(const std::string& path, parallel::DataParallel& parallel, optim::Optimizer& optimizer, base::Json& state);
  base::Status tell(const checkpoint::SaveOutcome& outcome);

  const Config& config_;
  comm::Group& group_;
  Progress& progress_;
  std::string folder_;
  bool gathered_ = false;
  std::unique_ptr<checkpoint::Saver> saver_;    // gathered: rank 0's only
  std::unique_ptr<checkpoint::Reader> chosen_;  // rank 0's
  int64_t asked_step_ = -1;
};

}  // namespace phalanx::engine::train
