#include "engine/tuning/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>

#include "engine/to_device.h"

namespace phalanx::engine::tuning {
namespace {

bool takes_means(const tune::Recipe& recipe) {
  return recipe.pref_loss == "ipo" || recipe.pref_loss == "orpo" || recipe.pref_loss == "simpo";
}

at::Tensor losses_of(const tune::Recipe& recipe, const PairLogs& policy, const at::Tensor& gap, const at::Tensor& reference_gap) {
  const double beta = recipe.pref_beta, smoothing = recipe.dpo_label_smoothing;
  if (recipe.pref_loss == "simpo") return -at::log_sigmoid(gap * beta - recipe.simpo_gamma);
  if (recipe.pref_loss == "orpo") {
    const at::Tensor odds = gap - (at::log1p(-at::exp(policy.chosen)) - at::log1p(-at::exp(policy.rejected)));
    return -policy.chosen - at::log_sigmoid(odds) * beta;
  }
  const at::Tensor margin = gap - reference_gap;
  if (recipe.pref_loss == "hinge") return at::relu(1 - margin * beta);
  if (recipe.pref_loss == "ipo") return (margin - 1 / (2 * beta)).pow(2);
  return -at::log_sigmoid(margin * beta) * (1 - smoothing) - at::log_sigmoid(-margin * beta) * smoothing;
}

}  // namespace

bool has_reference(const tune::Recipe& recipe) { return recipe.pref_loss != "orpo" && recipe.pref_loss != "simpo"; }

PairLogs split_pairs(const RowLogs& rows, const tune::Recipe& recipe) {
  const int64_t pairs = rows.sums.size(0) / 2;
  std::vector<double> counts;
  for (int64_t count : rows.counts) counts.push_back(static_cast<double>(std::max<int64_t>(count, 1)));
  const at::Tensor means = rows.sums / to_device(at::tensor(counts).to(rows.sums.scalar_type()), rows.sums.device());
  const at::Tensor& used = takes_means(recipe) ? means : rows.sums;
  return {used.narrow(0, 0, pairs), used.narrow(0, pairs, pairs), means.narrow(0, 0, pairs)};
}

PairLoss pair_loss(const tune::Recipe& recipe, const PairLogs& policy, const at::Tensor& reference_chosen,
                   const at::Tensor& reference_rejected) {
  at::Tensor losses = losses_of(recipe, policy, policy.chosen - policy.rejected, reference_chosen - reference_rejected);
  if (recipe.pref_ftx > 1e-6) losses = losses - policy.chosen_means * recipe.pref_ftx;
  const auto mean = [](const at::Tensor& value) { return value.detach().to(at::kDouble).mean().item<double>(); };
  const at::Tensor better = (policy.chosen - reference_chosen) * recipe.pref_beta;
  const at::Tensor worse = (policy.rejected - reference_rejected) * recipe.pref_beta;
  return {losses.mean(),
          {mean(policy.chosen), mean(policy.rejected), mean(at::gt(better, worse)), mean(better), mean(better - worse), mean(worse)}};
}

}  // namespace phalanx::engine::tuning
