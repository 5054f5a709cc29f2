// The smallest program on the engine: all ranks together fit y = 3x + 1. phalanx run --nproc-per-node 2 -- ./first
#include <ATen/Context.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <memory>

#include "engine/optim/sgd.h"
#include "engine/parallel/data_parallel.h"
using namespace phalanx::engine;

phalanx::base::Status train() {
  PHALANX_TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));  // RANK, WORLD_SIZE, … as any launcher sets them
  PHALANX_TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, at::kCPU));
  torch::nn::Linear line(1, 1);  // any torch::nn::Module
  PHALANX_TRY_ASSIGN(auto parallel, parallel::DataParallel::wrap(*line, *group, {.stage = parallel::Stage::kDdp}));
  optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
  at::manual_seed(static_cast<uint64_t>(env.rank));  // each rank has other data
  for (int step = 1; step <= 300; ++step) {
    const at::Tensor x = at::rand({16, 1});
    parallel->backward(at::mse_loss(line(x), 3 * x + 1));  // the gradient is the mean over all ranks
    parallel->step(sgd, {.lr = 0.3});                      // the same step on every rank
  }
  std::printf("rank %d: y = %.2fx + %.2f\n", env.rank, line->weight.item<double>(), line->bias.item<double>());
  group->leave();
  return phalanx::base::ok();
}

int main() {
  const phalanx::base::Status done = train();
  if (!done.ok()) std::fputs(done.error().render().c_str(), stderr);
  return done.ok() ? 0 : phalanx::base::exit_code(done.error().kind);
}
