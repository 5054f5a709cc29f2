// The fused layers against the plain at:: operators they stand for: values and gradients.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Fused, RmsNormAndItsDerivatives) {
  for (bool learns : {true, false}) {
    at::Tensor x = at::randn({3, 50, 37}).mul_(3).requires_grad_(true), weight = at::randn({37}).requires_grad_(learns);
    at::Tensor again = x.detach().clone().requires_grad_(true), same = weight.detach().clone().requires_grad_(learns);
    const at::Tensor weights = at::randn({3, 50, 37});
    at::Tensor plain = weight * (x * at::rsqrt(x.pow(2).mean(-1, true) + 1e-5)), ours = fused_rms_norm(again, same, 1e-5);
    EXPECT_LT(relative(ours, plain), 1e-6);
    plain.backward(weights);
    ours.backward(weights);
    EXPECT_LT(relative(again.grad(), x.grad()), 3e-6);
    EXPECT_EQ(same.grad().defined(), learns);
    if (learns) { EXPECT_LT(relative(same.grad(), weight.grad()), 3e-6); }
  }
}

TEST(Fused, RmsNormOfOnePlusTheWeight) {
  const at::Tensor x = at::randn({20, 37}), weight = at::randn({37});
  EXPECT_LT(relative(fused_rms_norm(x, weight, 1e-5, 1), fused_rms_norm(x, weight + 1, 1e-5)), 1e-7);
}

void expect_gated(Gate act, at::ScalarType type) {
  {
    const double bound = type == at::kFloat ? 3e-6 : 2e-2;
    at::Tensor gate = (at::randn({999}) * 4).to(type).requires_grad_(true), up = at::randn({999}).to(type).requires_grad_(true);
    at::Tensor gate2 = gate.detach().clone().requires_grad_(true), up2 = up.detach().clone().requires_grad_(true);
    const at::Tensor weights = at::randn({999}).to(type);
    at::Tensor plain = (act == Gate::kSilu ? at::silu(gate) : at::gelu(gate, "tanh")) * up;
    at::Tensor ours = fused_gated(gate2 * 1, up2 * 1, act);
    EXPECT_LT(relative(ours, plain), bound);
    plain.backward(weights);
    ours.backward(weights);
    EXPECT_LT(relative(gate2.grad(), gate.grad()), bound);
    EXPECT_LT(relative(up2.grad(), up.grad()), bound);
  }
}

TEST(Fused, GatedAndItsDerivatives) {
  for (Gate act : {Gate::kSilu, Gate::kGeluTanh})
    for (at::ScalarType type : {at::kFloat, at::kBFloat16}) expect_gated(act, type);
  at::Tensor ends = at::tensor({-200.0f, -90.0f, 0.0f, 90.0f, 1e30f}), ones = at::ones({5});
  EXPECT_LT(most(fused_gated(ends.clone(), ones.clone()), at::silu(ends)), 1e-30);
}

// One sequence after another, heads repeated, scores whole.
at::Tensor plain_grouped(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape) {
  const auto by_head = [&](const at::Tensor& x, size_t i, bool turns) {
    at::Tensor part = x.narrow(0, shape.starts[i], shape.starts[i + 1] - shape.starts[i]).unflatten(1, {-1, shape.head}).transpose(0, 1);
    if (turns && shape.cos.defined()) {
      const at::Tensor cos = shape.cos.narrow(0, 0, part.size(1)), sin = shape.sin.narrow(0, 0, part.size(1));
      const int64_t half = shape.cos.size(1);
      const at::Tensor a = part.narrow(2, 0, half), b = part.narrow(2, half, half), rest = part.narrow(2, 2 * half, shape.head - 2 * half);
      part = at::cat({a * cos - b * sin, b * cos + a * sin, rest}, 2);
    }
    return part.repeat_interleave(shape.heads / (x.size(1) / shape.head), 0);
  };
  std::vector<at::Tensor> out;
  for (size_t i = 0; i + 1 < shape.starts.size(); ++i) {
    const double scale = shape.scale > 0 ? shape.scale : 1 / std::sqrt(static_cast<double>(shape.head));
    at::Tensor scores = at::matmul(by_head(q, i, true), by_head(k, i, true).transpose(1, 2)) * scale;
    if (shape.cap > 0) scores = (scores / shape.cap).tanh() * shape.cap;
    const int64_t time = scores.size(1);
    at::Tensor ahead = at::arange(time).unsqueeze(0) - at::arange(time).unsqueeze(1);  // key - query
    at::Tensor hidden = ahead > 0;
    if (shape.window > 0) hidden = hidden | (ahead <= -shape.window);
    scores = scores.masked_fill(hidden, -std::numeric_limits<float>::infinity());
    out.push_back(at::matmul(at::softmax(scores, -1), by_head(v, i, false)).transpose(0, 1).flatten(1, 2));
  }
  return at::cat(out);
}

void same_grouped(const AttentionShape& shape) {
  std::vector<at::Tensor> plain, fused;
  for (int64_t heads : {shape.heads, shape.kv_heads, shape.kv_heads}) {
    plain.push_back(at::randn({shape.rows(), heads * shape.head}).requires_grad_(true));
    fused.push_back(plain.back().detach().clone().requires_grad_(true));
  }
  at::Tensor expected = plain_grouped(plain[0], plain[1], plain[2], shape);
  at::Tensor ours = fused_grouped_attention(fused[0], fused[1], fused[2], shape);
  EXPECT_LT(relative(ours, expected), 1e-5);
  const at::Tensor weights = at::randn(ours.sizes());
  expected.backward(weights);
  ours.backward(weights);
  // As a share of the largest, but with a window of 1 those of q and k are all 0.
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT(most(fused[i].grad(), plain[i].grad()), 1e-5 * std::max(1.0, plain[i].grad().abs().max().item<double>())) << i;
}

TEST(Fused, AttentionOfGroupsWindowsAndSequences) {
  for (int64_t kv_heads : {1, 2, 6})
    for (int64_t window : {0, 1, 5, 40, 1000})
      for (bool turns : {false, true}) {
        SCOPED_TRACE(testing::Message() << kv_heads << " kv heads, window " << window << ", rotated " << turns);
        AttentionShape shape{{0, 1, 3, 73, 150}, 6, kv_heads, 8, window, {}, {}};
        if (turns) {
          const at::Tensor angles = at::outer(at::arange(77, at::kFloat), at::tensor({1.0f, 0.3f, 0.1f, 0.02f}));
          shape.cos = angles.cos();
          shape.sin = angles.sin();
        }
        same_grouped(shape);
      }
}

TEST(Fused, AttentionWithCapsOwnScalesAndPartsOfHeadsThatTurn) {
  for (int64_t window : {0, 5})
    for (double cap : {0.0, 0.3, 50.0}) {
      SCOPED_TRACE(testing::Message() << "window " << window << ", cap " << cap);
      AttentionShape shape{{0, 1, 3, 73, 150}, 6, 2, 8, window, {}, {}, 0.6, cap};
      const at::Tensor angles = at::outer(at::arange(77, at::kFloat), at::tensor({1.0f, 0.1f}));
      shape.cos = angles.cos();
      shape.sin = angles.sin();
      same_grouped(shape);
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
at::Tensor capped(const at::Tensor& logits, double cap) { return cap > 0 ? (logits / cap).tanh() * cap : logits; }
LossAndGrads head_loss(bool fused, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets, bool autocast,
                       double cap = 0) {
  at::Tensor a = x.clone().requires_grad_(true), w = weight.clone().requires_grad_(true), loss;
  {
    engine::AutocastScope scope(at::kCPU, {autocast, at::kBFloat16});
    loss = fused ? fused_head_loss(a, w, targets, -100, cap)
                 : at::cross_entropy_loss(capped(at::linear(a, w).to(at::kFloat), cap), targets, {}, at::Reduction::Sum, -100);
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

TEST(Fused, HeadLossOfCappedLogits) {
  at::Tensor x = at::randn({600, 24}), weight = at::randn({101, 24}), targets = at::randint(101, {600}, at::kLong);
  targets.narrow(0, 2, 100).fill_(-100);
  for (double cap : {2.0, 30.0}) {
    LossAndGrads ours = head_loss(true, x, weight, targets, false, cap), plain = head_loss(false, x, weight, targets, false, cap);
    EXPECT_LT(relative(ours.loss, plain.loss), 1e-6);
    EXPECT_LT(relative(ours.x, plain.x), 1e-5);
    EXPECT_LT(relative(ours.weight, plain.weight), 1e-5);
  }
  LossAndGrads shorts = head_loss(true, x, weight, targets, true, 2), plain = head_loss(false, x, weight, targets, true, 2);
  EXPECT_LT(relative(shorts.loss, plain.loss), 1e-4);
  EXPECT_LT(relative(shorts.x, plain.x), 2e-2);
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
