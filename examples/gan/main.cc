// Two modules, two optimizers: a generator learns to put points on a circle, against a discriminator that tells its points from real ones.
//
//   ./gan                                       one rank
//   phalanx run --nproc-per-node 2 -- ./gan     two
//
// Each module has its own DataParallel. The rule is the same as for one: all ranks make the same calls in the same order.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "engine/comm/group.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/cpu.h"

namespace {

using namespace phalanx;
using namespace phalanx::engine;

constexpr int64_t kSteps = 1500, kRows = 256;  // rows of all ranks together

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t in, int64_t out) {
    first = register_module("first", torch::nn::Linear(in, 64));
    second = register_module("second", torch::nn::Linear(64, 64));
    last = register_module("last", torch::nn::Linear(64, out));
  }
  at::Tensor forward(const at::Tensor& x) { return last(at::leaky_relu(second(at::leaky_relu(first(x), 0.2)), 0.2)); }
  torch::nn::Linear first{nullptr}, second{nullptr}, last{nullptr};
};
TORCH_MODULE(Net);

at::Tensor circle(int64_t rows) {  // radius 2
  const at::Tensor angle = at::rand({rows}) * (2 * M_PI);
  return at::stack({at::cos(angle), at::sin(angle)}, 1) * 2 + at::randn({rows, 2}) * 0.05;
}

at::Tensor judged(const at::Tensor& logits, double as) { return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, as)); }

// How far from the circle the points of all ranks are on average, and how many eighths of it they cover.
void report(Net& generator, comm::Group& group) {
  at::NoGradGuard no_grad;
  group.barrier("trained", std::chrono::minutes(5));  // throws after that, naming the ranks that never came
  at::Tensor noise = at::randn({2000 * group.world(), 8});
  group.broadcast(noise, 0, "noise");  // rank 0's for all; each rank takes a part of it
  const at::Tensor points = generator(noise.narrow(0, 2000 * group.rank(), 2000));
  const at::Tensor eighth = ((at::atan2(points.select(1, 1), points.select(1, 0)) / M_PI + 1) * 4).floor().clamp(0, 7);
  at::Tensor numbers = at::zeros({9});
  numbers[8] = (points.norm(2, 1) - 2).abs().mean() / group.world();
  for (int i = 0; i < 8; ++i) numbers[i] = eighth.eq(i).sum();
  group.all_reduce(numbers, comm::Reduction::kSum, "report");
  const auto covered = numbers.narrow(0, 0, 8).gt(0.02 * 2000 * group.world()).sum().item<int64_t>();
  if (group.rank() == 0) std::printf("distance %.4f, eighths %lld\n", numbers[8].item<double>(), static_cast<long long>(covered));
}

base::Status run() {
  PHALANX_TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));
  train::use_threads(env);
  PHALANX_TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, at::kCPU));

  at::manual_seed(1);
  Net generator(8, 2), discriminator(2, 1);
  PHALANX_TRY_ASSIGN(auto generators, parallel::DataParallel::wrap(*generator, *group, {}));
  PHALANX_TRY_ASSIGN(auto discriminators, parallel::DataParallel::wrap(*discriminator, *group, {}));
  optim::AdamW generator_adamw(generators->rows(), generators->groups(), {.beta1 = 0.5, .beta2 = 0.9});
  optim::AdamW discriminator_adamw(discriminators->rows(), discriminators->groups(), {.beta1 = 0.5, .beta2 = 0.9});

  at::manual_seed(100 + static_cast<uint64_t>(group->rank()));  // the weights are equal; what the ranks draw is not
  const int64_t rows = kRows / group->world();
  for (int64_t step = 0; step < kSteps; ++step) {
    const double lr = step < kSteps / 2 ? 1e-3 : 2e-4;
    // The discriminator: real points as 1, the generator's as 0. detach(): nothing of this reaches the generator.
    const at::Tensor made = generator(at::randn({rows, 8})).detach();
    const at::Tensor wrong = judged(discriminator(circle(rows)), 0.9) + judged(discriminator(made), 0);
    discriminators->backward(wrong);
    discriminators->step(discriminator_adamw, {.lr = lr});
    // The generator: its loss goes through the discriminator. The gradients that this leaves there are not the discriminator's
    // business: its DataParallel reduces only what its own backward() makes, and drops these at the next.
    const at::Tensor caught = judged(discriminator(generator(at::randn({rows, 8}))), 1);
    generators->backward(caught);
    generators->step(generator_adamw, {.lr = lr});
    if (group->rank() == 0 && step % 300 == 0)
      std::printf("step %lld discriminator %.3f generator %.3f\n", static_cast<long long>(step), wrong.item<double>(),
                  caught.item<double>());
  }
  report(generator, *group);
  group->leave();
  return base::ok();
}

}  // namespace

int main() {
  base::Status done = base::ok();
  try {
    done = run();
  } catch (const std::exception& failure) {
    done = base::fail(base::ErrorKind::kJobFailed, "this rank cannot go on").because(comm::reason(failure));
  }
  if (done.ok()) return 0;
  std::fputs(done.error().render().c_str(), stderr);
  return base::exit_code(done.error().kind);
}
