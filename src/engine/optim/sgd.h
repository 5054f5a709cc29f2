// Stochastic gradient descent with momentum, with torch.optim.SGD's arithmetic in its order.
#pragma once

#include "engine/optim/optimizer.h"

namespace phalanx::engine::optim {

struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;  // wants momentum > 0 and no dampening, as in torch
};

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Row> rows, std::vector<Group> groups, const SgdOptions& options);
  void step_row(size_t row) override;
  std::vector<NamedState> states() const override;
  std::string_view name() const override { return "sgd"; }

 private:
  SgdOptions options_;
  std::vector<at::Tensor> momentum_;  // empty without momentum
};

}  // namespace phalanx::engine::optim
