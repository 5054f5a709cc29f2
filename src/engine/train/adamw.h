// AdamW (Loshchilov & Hutter, arXiv 1711.05101) over flat buckets, with torch.optim.AdamW's arithmetic in its order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/parallel/flat.h"

namespace engine::train {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  // of buckets with decay; the others have none
};

class AdamW {
 public:
  // `buckets` must outlive this.
  AdamW(std::vector<parallel::Bucket>& buckets, const AdamWOptions& options);

  void step(double lr);

  // State, for checkpoints and for sharing at the start: one flat tensor per bucket and moment.
  int64_t steps_done = 0;
  std::vector<at::Tensor> mean;      // "exp_avg" of torch
  std::vector<at::Tensor> variance;  // "exp_avg_sq"

 private:
  std::vector<parallel::Bucket>& buckets_;
  AdamWOptions options_;
};

}  // namespace engine::train
