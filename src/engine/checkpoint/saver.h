// Saves checkpoints in the background: save() copies this rank's tensors and returns, a thread writes them.
//
//   auto saver = Saver::open({.folder = …, .rank = …, .world = …, .token = …});   // every rank, rank 0 first
//   saver->save({.step = …, .pieces = …});                                        // every rank, in the same order
//   while (auto outcome = saver->poll()) …                                        // now and then
//   while (auto outcome = saver->wait()) …                                        // behind the last step
//
// Rank 0's thread also finishes the checkpoint (sharded.h); the others are done once their shard is written. Saver is used from
// one thread. One save is under way at a time, so at most one copy of this rank's tensors exists; its memory is used again by the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/checkpoint/sharded.h"
#include "engine/comm/group.h"

namespace phalanx::engine::checkpoint {

enum class WhenBusy { kWait, kRefuse };

struct SaverOptions {
  std::string folder = {};  // the run's checkpoints; created
  int rank = 0, world = 1;
  std::string token = {};  // of this attempt, equal on all ranks and new in every attempt: rank 0's make_token()
  std::string run = {};    // that this is an attempt of (owner.h)
  int64_t keep = 0;        // newest checkpoints to keep, 0 for all; the best is always kept
  WhenBusy when_busy = WhenBusy::kWait;
  std::chrono::milliseconds deadline{30 * 60 * 1000};  // for the other ranks' shards
  StageHook stage = {};                                // for tests: called in the saver's thread
};

struct SaveRequest {
  int64_t step = 0;
  std::vector<Piece> pieces = {};                  // on any device; copied before save() returns
  base::Json rank_state = base::Json::object();    // this rank's own
  base::Json common_state = base::Json::object();  // rank 0's is saved
  std::optional<Best> best = {};                   // rank 0's: this checkpoint is the best so far
};

struct SaveOutcome {
  int64_t step = 0;
  base::Status status = base::ok();
  std::string path = {};                 // at rank 0, when saved
  std::string trouble = {};              // at rank 0: saved, but old ones could not be removed
  Removals removals = {};                // at rank 0: lines for the log, one for each thing removed
  uint64_t bytes = 0;                    // of this rank's shard
  std::chrono::nanoseconds copied{0};    // time save() took to copy
  std::chrono::nanoseconds written{0};   // time the thread took for this rank's shard
  std::chrono::nanoseconds finished{0};  // from save()'s copy to the end
};

class Saver {
 public:
  // At rank 0 claims the folder and removes what crashes left in it; the others must come after that (any collective between).
  // Error: the folder cannot be read or written.
  static base::Result<std::unique_ptr<Saver>> open(SaverOptions options);
  // Gives up what is under way: the previous checkpoint stays. wait() first to keep it.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // What open() removed: lines for the log.
  const Removals& removed_at_start() const { return removed_at_start_; }

  // Returns once the tensors are copied, so they may change. While an earlier save is under way: waits for it, or (kRefuse) fails, and
  // this save fails on all ranks. Failures of the writing come by poll() and wait(); none harms an earlier checkpoint.
  base::Status save(SaveRequest request);
  bool busy();
  // Waits until nothing is being written, at most for so long. False: something still is.
  bool idle_within(std::chrono::milliseconds patience);
  // The outcome of the oldest save that has ended and was not told yet; wait() waits for the one under way. nullopt: there is none.
  std::optional<SaveOutcome> poll();
  std::optional<SaveOutcome> wait();

 private:
  explicit Saver(SaverOptions options) : options_(std::move(options)) {}
  void run();
  SaveOutcome carry_out(const SaveId& id, const SaveRequest& request);
  base::Status write(const SaveId& id, const SaveRequest& request, SaveOutcome& outcome);
  std::vector<Piece> copy(std::vector<Piece> pieces);

  struct Task {
    SaveId id;
    SaveRequest request;
    std::chrono::nanoseconds copied{0};
  };
  const SaverOptions options_;
  Removals removed_at_start_;
  int64_t sequence_ = 0;            // calls of save()
  std::vector<at::Tensor> copies_;  // of the tensors; the thread reads them while a task is under way
  Interrupt interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Task> task_;          // under way or about to be
  std::deque<SaveOutcome> outcomes_;  // not told yet
  bool ending_ = false;
  std::thread thread_;
};

// Returns when no rank of the group writes any more. Collective. A rank that waited for its own writer alone, which waits for the shards of
// all ranks, would not notice that one of them has exited; this throws comm::PeerExited then, as every operation of the group does.
// saver: null at a rank that has none.
void wait_together(comm::Group& group, Saver* saver);

}  // namespace phalanx::engine::checkpoint
