// Lion (Chen et al., arXiv 2302.06675, algorithm 2): the sign of an interpolated momentum, with decoupled weight decay. Half of AdamW's
// state.
#pragma once

#include "engine/optim/optimizer.h"

namespace phalanx::engine::optim {

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
};

class Lion final : public Optimizer {
 public:
  Lion(std::vector<Row> rows, std::vector<Group> groups, const LionOptions& options);
  void step_row(size_t row) override;
  std::vector<NamedState> states() const override { return {{"exp_avg", mean_}}; }
  std::string_view name() const override { return "lion"; }

 private:
  LionOptions options_;
  std::vector<at::Tensor> mean_;
};

}  // namespace phalanx::engine::optim
