// What each fused loop saves on its own: it and the at:: operators it stands for take turns in one process, on the shapes of a GPT of
// 13.9 M parameters (context 256, batch 8). Milliseconds, forward and backward together, medians; docs/design/kernels.md.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include "engine/autocast.h"
#include "engine/model/fused.h"
#include "engine/optim/adamw.h"
#include "engine/train/cpu.h"

namespace {

using namespace phalanx::engine;

// Of this thread's CPU time: other people's programs on this machine count less than on the clock on the wall.
double milliseconds(const std::function<void()>& work) {
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) * 1e3 + static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e6;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const char* name, int rounds, const std::function<void()>& fused, const std::function<void()>& plain) {
  std::vector<double> ours, theirs, ratios;
  fused();
  plain();
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(milliseconds(fused));
    theirs.push_back(milliseconds(plain));
    ratios.push_back(theirs.back() / ours.back());
  }
  fmt::print("{:34} {:10.2f} {:10.2f} {:9.2f}x\n", name, median(ours), median(theirs), median(ratios));
  std::fflush(stdout);
}

at::Tensor plain_attention(const at::Tensor& qkv, int64_t heads, const at::Tensor& mask) {
  const int64_t batch = qkv.size(0), time = qkv.size(1), width = qkv.size(2) / 3, head = width / heads;
  at::Tensor parts = qkv.view({batch, time, 3, heads, head}).permute({2, 0, 3, 1, 4});
  at::Tensor scores = at::matmul(parts[0] * (1 / std::sqrt(static_cast<double>(head))), parts[1].transpose(-2, -1)).add_(mask);
  return at::matmul(at::softmax(scores, -1), parts[2]).transpose(1, 2).reshape({batch, time, width});
}

void layers(at::ScalarType type, const char* suffix, int rounds) {
  const bool shorts = type != at::kFloat;
  auto named = [&](const char* name) { return fmt::format("{}{}", name, suffix); };
  at::Tensor wide = at::randn({8, 256, 1536}).to(type), d_wide = at::randn({8, 256, 1536}).to(type);
  // The fused one takes its argument's memory, as the layer before would have left it: both get a copy.
  auto gelu = [&](auto function) {
    return [&, function] {
      at::Tensor x = wide.detach().requires_grad_(true);
      function(x.clone()).backward(d_wide);
    };
  };
  compare(named("gelu 2048 x 1536").c_str(), rounds, gelu([](const at::Tensor& x) { return model::fused_gelu(x); }),
          gelu([](const at::Tensor& x) { return at::gelu(x); }));

  at::Tensor qkv = at::randn({8, 256, 1152}).to(type), d_out = at::randn({8, 256, 384}).to(type);
  at::Tensor mask = at::full({256, 256}, -std::numeric_limits<float>::infinity()).triu(1);
  auto attention = [&](auto function) { return [&, function] { function(qkv.detach().requires_grad_(true)).backward(d_out); }; };
  compare(named("attention 8 x 6 heads, 256 x 64").c_str(), rounds,
          attention([](const at::Tensor& x) { return model::fused_causal_attention(x, 6); }),
          attention([&](const at::Tensor& x) { return plain_attention(x, 6, mask); }));

  at::Tensor x = at::randn({2048, 384}), weight = at::randn({8192, 384}) * 0.02, targets = at::randint(8192, {2048}, at::kLong);
  auto head = [&](auto function) {
    return [&, function] {
      at::Tensor a = x.detach().requires_grad_(true), w = weight.detach().requires_grad_(true), loss;
      {
        AutocastScope scope(at::kCPU, {shorts, at::kBFloat16});
        loss = function(a, w);
      }
      (loss / 2048).backward();
    };
  };
  compare(named("head and loss, 2048 x 8192").c_str(), std::max(3, rounds / 3),
          head([&](const at::Tensor& a, const at::Tensor& w) { return model::fused_head_loss(a, w, targets, -100); }),
          head([&](const at::Tensor& a, const at::Tensor& w) {
            return at::cross_entropy_loss(at::linear(a, w), targets, {}, at::Reduction::Sum, -100);
          }));
}

void optimizer(int rounds) {
  const int64_t n = 13'900'000;
  at::Tensor grads = at::randn({n});
  auto make = [&] {
    return std::make_shared<optim::AdamW>(std::vector<optim::Row>{{at::randn({n}), grads, {}, {{0, n, 0}}}},
                                          std::vector<optim::Group>{{"all", 1, 0.1}}, optim::AdamWOptions{});
  };
  auto ours = make(), theirs = make();
  theirs->plain = true;
  compare("AdamW, 13.9 M in one row", rounds, [=] { ours->step(1e-3); }, [=] { theirs->step(1e-3); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  at::set_num_threads(1);
  train::keep_freed_memory();  // as phalanx-train has it
  fmt::print("{:34} {:>10} {:>10} {:>10}\n", "ms, forward + backward", "fused", "at::", "ratio");
  layers(at::kFloat, "", rounds);
  layers(at::kBFloat16, ", bf16", rounds);
  optimizer(rounds);
}
