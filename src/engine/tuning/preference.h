// The loss of pairs of answers, of which one is preferred (stage dpo).
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/train/dpo/trainer.py, and TRL's dpo_loss; DPO: arXiv 2305.18290.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "engine/tuning/decoder/decoder.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::tuning {

// What is logged of a batch of pairs, under the names that TRL gives it.
inline constexpr std::array kPairMetrics{"logps/chosen",   "logps/rejected",  "rewards/accuracies",
                                         "rewards/chosen", "rewards/margins", "rewards/rejected"};
using PairMetrics = std::array<double, kPairMetrics.size()>;

// log p of the answers of a batch of pairs, which were laid end to end: all chosen ones, then all rejected ones. For ipo, orpo and simpo
// the mean per token, else the sum.
struct PairLogs {
  at::Tensor chosen, rejected;  // [pairs]
  at::Tensor chosen_means;      // [pairs], per token
};
PairLogs split_pairs(const RowLogs& rows, const tune::Recipe& recipe);

// Whether the loss compares with a reference.
bool has_reference(const tune::Recipe& recipe);

struct PairLoss {
  at::Tensor mean;  // over the pairs
  PairMetrics metrics{};
};
// `reference_chosen` and `reference_rejected`: the reference's log p of the same, [pairs]; zeros without one.
PairLoss pair_loss(const tune::Recipe& recipe, const PairLogs& policy, const at::Tensor& reference_chosen,
                   const at::Tensor& reference_rejected);

}  // namespace phalanx::engine::tuning
