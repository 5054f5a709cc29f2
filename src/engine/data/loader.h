// Batches of one rank. A batch is a pure function of its number, so resuming at step k needs no state: ask for batch k.
//
// The text is cut into windows of `context` tokens; window i's targets are its tokens moved one to the left. An epoch
// visits the windows in the DistributedSampler's order. The batches of all ranks together are the same for every
// number of ranks (window (k·ranks + r) of the epoch goes to rank r), so the loss curve does not depend on how many
// ranks share the work.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/data/sampler.h"

namespace engine::data {

struct Batch {
  at::Tensor tokens;   // [rows, context] int64, on CPU
  at::Tensor targets;  // the same shape
};

class Loader {
 public:
  // The number of windows in a text of this many bytes.
  static int64_t windows(size_t bytes, int64_t context);

  // `text` must outlive the loader. rows: windows per batch of this rank. options.samples is overwritten; there must be at
  // least one whole batch (batches_per_epoch() > 0).
  Loader(std::string_view text, int64_t context, int64_t rows, SamplerOptions options);

  int64_t batches_per_epoch() const { return per_epoch_; }
  Batch batch(int64_t number);  // number 0 is the first batch of epoch 0

 private:
  std::string_view text_;
  int64_t context_;
  int64_t rows_;
  SamplerOptions options_;
  int64_t per_epoch_;
  int64_t epoch_ = -1;  // whose order is in indices_
  std::vector<int64_t> indices_;
};

}  // namespace engine::data
