// The whole model: fused against plain, recomputed against kept, dropout, missing targets.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "engine/autocast.h"
#include "engine/model/gpt.h"
#include "engine/model/recompute.h"

using namespace phalanx;

namespace {

using namespace engine::model;

constexpr GptShape kShape = {.vocabulary = 211, .context = 72, .layers = 3, .heads = 4, .width = 32};

struct Result {
  double loss = 0;
  int64_t targets = 0;
  std::vector<at::Tensor> grads;
};

Result run(const GptShape& shape, const GptExecution& execution, bool autocast = false, int64_t missing = 0) {
  Gpt gpt(shape, execution);
  gpt->init(3);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(11);
  at::Tensor tokens = at::randint(shape.vocabulary, {4, shape.context}, at::kLong);
  at::Tensor targets = at::randint(shape.vocabulary, {4, shape.context}, at::kLong);
  if (missing > 0) targets.narrow(1, 3, missing).fill_(GptImpl::kNoTarget);
  SummedLoss loss;
  {
    engine::AutocastScope scope(at::kCPU, {autocast, at::kBFloat16});
    loss = gpt->loss(tokens, targets);
  }
  (loss.sum / static_cast<double>(loss.targets)).backward();
  Result result{loss.sum.item<double>(), loss.targets, {}};
  for (auto& parameter : gpt->parameters()) result.grads.push_back(parameter.grad());
  return result;
}

double worst(const Result& a, const Result& b) {
  double most = 0;
  for (size_t i = 0; i < a.grads.size(); ++i)
    most = std::max(most, ((a.grads[i] - b.grads[i]).abs().max() / b.grads[i].abs().max()).item<double>());
  return most;
}

TEST(Gpt, FusedIsPlain) {
  for (int64_t missing : {0, 20}) {
    Result fused = run(kShape, {}, false, missing), plain = run(kShape, {.kernels = Kernels::kPlain}, false, missing);
    EXPECT_EQ(fused.targets, 4 * (72 - missing));
    EXPECT_EQ(plain.targets, fused.targets);
    EXPECT_NEAR(fused.loss / plain.loss, 1, 1e-6);
    // The key's bias has a gradient of zero in exact arithmetic, so rounding is compared with the whole of the qkv bias.
    EXPECT_LT(worst(fused, plain), 1e-5);
  }
  Result fused = run(kShape, {}, true), plain = run(kShape, {.kernels = Kernels::kPlain}, true);
  EXPECT_NEAR(fused.loss / plain.loss, 1, 1e-3);
  EXPECT_LT(worst(fused, plain), 0.1);
}

TEST(Gpt, RecomputedIsKeptBitForBit) {
  for (Kernels kernels : {Kernels::kFused, Kernels::kPlain})
    for (double dropout : {0.0, 0.3})
      for (bool autocast : {false, true}) {
        GptShape shape = kShape;
        shape.dropout = dropout;
        Result kept = run(shape, {kernels, false}, autocast), again = run(shape, {kernels, true}, autocast);
        EXPECT_EQ(kept.loss, again.loss);
        for (size_t i = 0; i < kept.grads.size(); ++i)
          EXPECT_TRUE(kept.grads[i].equal(again.grads[i])) << "dropout " << dropout << " autocast " << autocast << " parameter " << i;
      }
}

// As a loop that keeps one autocast scope around forward and backward would have it.
TEST(Gpt, RecomputedInsideTheAutocastScopeStillHasGradients) {
  Gpt gpt(kShape, GptExecution{Kernels::kFused, true});
  gpt->init(3);
  at::Tensor tokens = at::randint(kShape.vocabulary, {2, 16}, at::kLong);
  engine::AutocastScope scope(at::kCPU, {true, at::kBFloat16});
  gpt->loss(tokens, tokens).sum.backward();
  for (auto& item : gpt->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    if (item.key().ends_with("bias")) continue;
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
  }
}

TEST(Gpt, DropoutFollowsTheGeneratorAndStopsInEvaluation) {
  GptShape shape = kShape;
  shape.dropout = 0.2;
  Gpt gpt(shape);
  gpt->init(3);
  at::NoGradGuard no_grad;
  at::Tensor tokens = at::randint(shape.vocabulary, {2, 16}, at::kLong);
  const at::Tensor state = rng_state(at::kCPU);
  const double first = gpt->loss(tokens, tokens).sum.item<double>(), second = gpt->loss(tokens, tokens).sum.item<double>();
  EXPECT_NE(first, second);
  set_rng_state(at::kCPU, state);
  EXPECT_EQ(gpt->loss(tokens, tokens).sum.item<double>(), first);
  EXPECT_EQ(gpt->loss(tokens, tokens).sum.item<double>(), second);
  gpt->eval();
  EXPECT_EQ(gpt->loss(tokens, tokens).sum.item<double>(), gpt->loss(tokens, tokens).sum.item<double>());
}

TEST(Gpt, LossIsThatOfItsLogits) {
  Gpt gpt(kShape);
  gpt->init(3);
  at::NoGradGuard no_grad;
  at::Tensor tokens = at::randint(kShape.vocabulary, {2, 16}, at::kLong);
  at::Tensor logits = gpt(tokens).flatten(0, 1).log_softmax(-1);
  const double expected = -logits.gather(1, tokens.reshape({-1, 1})).sum().item<double>();
  EXPECT_NEAR(gpt->loss(tokens, tokens).sum.item<double>(), expected, 1e-3);
}

}  // namespace
