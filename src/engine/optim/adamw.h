// AdamW (Loshchilov & Hutter, arXiv 1711.05101) with torch.optim.AdamW's arithmetic in its order. It differs from Debian's torch only
// where that one fuses a multiplication with an addition: by 1 unit in the last place.
#pragma once

#include "engine/optim/optimizer.h"

namespace phalanx::engine::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<Row> rows, std::vector<Group> groups, const AdamWOptions& options);
  void step_row(size_t row) override;
  std::vector<NamedState> states() const override { return {{"exp_avg", mean_}, {"exp_avg_sq", variance_}}; }
  std::string_view name() const override { return "adamw"; }

 private:
  AdamWOptions options_;
  std::vector<at::Tensor> mean_, variance_;
};

}  // namespace phalanx::engine::optim
