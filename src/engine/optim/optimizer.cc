#include "engine/optim/optimizer.h"

#include <ATen/ops/zeros_like.h>

#include "engine/require.h"

namespace phalanx::engine::optim {

Optimizer::Optimizer(std::vector<Row> rows, std::vector<Group> groups) : rows_(std::move(rows)), groups_(std::move(groups)) {
  for (const Row& row : rows_) {
    require(row.params.scalar_type() == at::kFloat && row.params.dim() == 1 && row.params.is_contiguous(),
            "the parameters of a row must be one contiguous dimension of float32");
    require(row.grads.is_contiguous() && row.grads.numel() == row.params.numel(),
            "a row of {} parameters needs as many contiguous gradients; it has {}", row.params.numel(), row.grads.numel());
    require(!row.compute.defined() || (row.compute.is_contiguous() && row.compute.numel() == row.params.numel()),
            "the copy of a row that computes must be contiguous and as long as the row, {}", row.params.numel());
    int64_t last = 0;
    for (const Run& run : row.runs) {
      require(last <= run.begin && run.begin <= run.end && run.end <= row.params.numel(),
              "run {}–{} overlaps the previous run or exceeds its row of {}", run.begin, run.end, row.params.numel());
      require(run.group >= 0 && static_cast<size_t>(run.group) < groups_.size(), "group {} does not exist; there are {}", run.group,
              groups_.size());
      last = run.end;
    }
  }
}

void Optimizer::step(double lr, double grad_scale) {
  begin_step(lr, grad_scale);
  for (size_t row = 0; row < rows_.size(); ++row) step_row(row);
}

void Optimizer::begin_step(double lr, double grad_scale) {
  ++steps_done;
  lr_ = lr;
  grad_scale_ = grad_scale;
}

std::vector<at::Tensor> Optimizer::zeros_like_rows() const {
  std::vector<at::Tensor> zeros;
  for (const Row& row : rows_) zeros.push_back(at::zeros_like(row.params));
  return zeros;
}

}  // namespace phalanx::engine::optim
