// The fused layers against the plain at:: operators they stand for: values and gradients.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/autocast.h"
#include "engine/model/fused.h"
#include "engine/model/gemm.h"
#include "engine/model/layers.h"
#include "engine/model/loops.h"

using namespace phalanx;

namespace {

using namespace engine::model;

double most(const at::Tensor& a, const at::Tensor& b) { return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>(); }
// Largest difference as a share of the largest value.
double relative(const at::Tensor& a, const at::Tensor& b) { return most(a, b) / b.abs().max().item<double>(); }

TEST(Fused, GeluAndItsDerivativeAreTorchsWithinAMillionth) {
  at::Tensor x = at::linspace(-12, 12, 100'003).requires_grad_(true), y = at::gelu(x);
  at::Tensor weights = at::randn({100'003});
  y.backward(weights);
  at::Tensor again = x.detach().clone().requires_grad_(true), fresh = again * 1;
  at::Tensor ours = fused_gelu(fresh);
  ours.backward(weights);
  EXPECT_LT((ours - y).abs().div(y.abs().clamp_min(1)).max().item<double>(), 1e-6);
  EXPECT_LT((again.grad() - x.grad()).abs().div(weights.abs() + 1e-3).max().item<double>(), 1e-6);
}

TEST(Fused, GeluOfShortFloats) {
  at::Tensor x = at::linspace(-8, 8, 5001).to(at::kBFloat16), wide = x.to(at::kFloat);
  EXPECT_TRUE(most(fused_gelu(x.clone()), at::gelu(wide)) < 0.017);  // half a unit in the last place at 8
  at::Tensor tails = at::tensor({-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(), std::nanf("")});
  at::Tensor ours = fused_gelu(tails.clone());
  EXPECT_TRUE(std::isinf(ours[1].item<float>()));
  EXPECT_TRUE(std::isnan(ours[2].item<float>()));
}

TEST(Fused, GemmInEveryForm) {
  at::Tensor a = at::randn({5, 7}), b = at::randn({7, 9}), c = at::randn({5, 9});
  const at::Tensor expected = a.mm(b) * 0.5 + c * 2;
  at::Tensor at_ = a.t().contiguous(), bt = b.t().contiguous();
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      at::Tensor out = c.clone();
      gemm(5, 9, 7, 0.5, {(ta ? at_ : a).data_ptr<float>(), ta ? 5 : 7, ta}, {(tb ? bt : b).data_ptr<float>(), tb ? 7 : 9, tb}, 2,
           out.data_ptr<float>(), 9);
      EXPECT_LT(most(out, expected), 1e-5) << ta << tb;
    }
}

// Both forms of the same attention: outputs and the gradients of input and parameters.
void same_attention(int64_t batch, int64_t time, int64_t width, int64_t heads, bool autocast, double bound) {
  CausalAttention fused(width, heads, Kernels::kFused), plain(width, heads, Kernels::kPlain);
  for (auto* layer : {&fused, &plain}) {
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(5);
    at::NoGradGuard no_grad;
    for (auto& parameter : (*layer)->parameters()) parameter.normal_(0, 0.3);
  }
  at::Tensor x = at::randn({batch, time, width}), weights = at::randn({batch, time, width});
  at::Tensor x1 = x.clone().requires_grad_(true), x2 = x.clone().requires_grad_(true), y1, y2;
  {
    engine::AutocastScope scope(at::kCPU, {autocast, at::kBFloat16});
    y1 = fused(x1);
    y2 = plain(x2);
  }
  EXPECT_EQ(y1.scalar_type(), autocast ? at::kBFloat16 : at::kFloat);
  EXPECT_LT(relative(y1, y2), bound) << time;
  y1.backward(weights.to(y1.scalar_type()));
  y2.backward(weights.to(y2.scalar_type()));
  EXPECT_LT(relative(x1.grad(), x2.grad()), bound) << time;
  for (size_t p = 0; p < fused->parameters().size(); ++p)
    EXPECT_LT(relative(fused->parameters()[p].grad(), plain->parameters()[p].grad()), bound) << time << " parameter " << p;
}

TEST(Fused, AttentionOfEveryLength) {
  for (int64_t time : {1, 2, 63, 64, 65, 130, 256}) same_attention(2, time, 48, 3, false, 1e-5);
  same_attention(1, 100, 64, 1, false, 1e-5);
  at::set_num_threads(2);
  same_attention(3, 70, 32, 4, false, 1e-5);
  at::set_num_threads(1);
}

TEST(Fused, AttentionInShortFloats) { same_attention(2, 130, 48, 3, true, 4e-2); }

TEST(Fused, AttentionSeesNothingAhead) {
  at::Tensor qkv = at::randn({1, 130, 96}), changed = qkv.clone();
  changed.narrow(1, 100, 30).add_(3);
  at::Tensor before = fused_causal_attention(qkv, 2), after = fused_causal_attention(changed, 2);
  EXPECT_TRUE(before.narrow(1, 0, 100).equal(after.narrow(1, 0, 100)));
  EXPECT_FALSE(before.narrow(1, 100, 30).equal(after.narrow(1, 100, 30)));
}

struct LossAndGrads {
  at::Tensor loss, x, weight;
};
LossAndGrads head_loss(bool fused, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets, bool autocast) {
  at::Tensor a = x.clone().requires_grad_(true), w = weight.clone().requires_grad_(true), loss;
  {
    engine::AutocastScope scope(at::kCPU, {autocast, at::kBFloat16});
    loss = fused ? fused_head_loss(a, w, targets, -100)
                 : at::cross_entropy_loss(at::linear(a, w).to(at::kFloat), targets, {}, at::Reduction::Sum, -100);
  }
  (loss / 7).backward();
  return {loss.detach(), a.grad(), w.grad()};
}

TEST(Fused, HeadLossWithMissingTargets) {
  for (int64_t tokens : {1, 5, 511, 512, 513, 1300}) {
    at::Tensor x = at::randn({tokens, 24}), weight = at::randn({101, 24}), targets = at::randint(101, {tokens}, at::kLong);
    if (tokens > 5) targets.narrow(0, 2, tokens / 2).fill_(-100);
    LossAndGrads ours = head_loss(true, x, weight, targets, false), plain = head_loss(false, x, weight, targets, false);
    EXPECT_LT(relative(ours.loss, plain.loss), 1e-6) << tokens;
    EXPECT_LT(relative(ours.x, plain.x), 1e-5) << tokens;
    EXPECT_LT(relative(ours.weight, plain.weight), 1e-5) << tokens;

    LossAndGrads our_shorts = head_loss(true, x, weight, targets, true), shorts = head_loss(false, x, weight, targets, true);
    EXPECT_LT(relative(our_shorts.loss, shorts.loss), 1e-5) << tokens;
    EXPECT_LT(relative(our_shorts.x, shorts.x), 2e-2) << tokens;
    EXPECT_LT(relative(our_shorts.weight, shorts.weight), 2e-2) << tokens;
  }
}

TEST(Fused, HeadLossOfLargeLogitsAndOfNoTargetAtAll) {
  at::Tensor x = at::full({3, 4}, 100.0f), weight = at::randn({50, 4}) * 10, targets = at::randint(50, {3}, at::kLong);
  LossAndGrads ours = head_loss(true, x, weight, targets, false), plain = head_loss(false, x, weight, targets, false);
  EXPECT_LT(relative(ours.loss, plain.loss), 1e-6);
  EXPECT_LT(relative(ours.x, plain.x), 1e-5);
  ours = head_loss(true, x, weight, at::full({3}, -100, at::kLong), false);
  EXPECT_EQ(ours.loss.item<float>(), 0);
  EXPECT_EQ(ours.x.abs().max().item<float>(), 0);
  EXPECT_EQ(ours.weight.abs().max().item<float>(), 0);
}

TEST(Fused, HeadLossRefusesTargetsThatAreNoClass) {
  at::Tensor x = at::randn({2, 4}), weight = at::randn({5, 4});
  for (int64_t bad : {5, -1, -101, 1 << 30}) EXPECT_ANY_THROW(fused_head_loss(x, weight, at::full({2}, bad, at::kLong), -100)) << bad;
}

TEST(Fused, TakesOnlyWhatItKnows) {
  at::Tensor x = at::randn({4, 6});
  EXPECT_TRUE(can_fuse(x));
  EXPECT_TRUE(can_fuse(x.to(at::kBFloat16)));
  EXPECT_FALSE(can_fuse(x.to(at::kHalf)));
  EXPECT_FALSE(can_fuse(x.to(at::kDouble)));
  EXPECT_FALSE(can_fuse(x.t()));
  EXPECT_FALSE(can_fuse(x.narrow(0, 0, 0)));
}

// libtorch 1.13 refuses fp16 on CPU, later versions do it: nothing of a refused scope may stay behind.
TEST(Fused, NotUnderAutocastToFp16) {
  at::Tensor x = at::randn({4, 6});
  try {
    engine::AutocastScope scope(at::kCPU, {true, at::kHalf});
    EXPECT_FALSE(can_fuse(x));
  } catch (const c10::Error&) { EXPECT_FALSE(engine::autocast_of(at::kCPU).on); }
  EXPECT_FALSE(engine::autocast_of(at::kCPU).on);
  EXPECT_TRUE(can_fuse(x));
}

TEST(Loops, AnUnknownLossIsNotHidden) {
  float row[40] = {};
  row[17] = std::nanf("");
  EXPECT_TRUE(std::isnan(cross_entropy_of_row(row, 40, 3, false)));
  float far[40];
  for (int i = 0; i < 40; ++i) far[i] = i == 5 ? 0 : -std::numeric_limits<float>::infinity();
  EXPECT_EQ(cross_entropy_of_row(far, 40, 5, true), 0);
  for (float grad : far) EXPECT_EQ(grad, 0);
}

}  // namespace
