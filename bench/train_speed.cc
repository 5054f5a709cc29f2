// One rank of the engine's side of bench/train.sh. Its peer, bench/train_peer.py, does the same work in Python and speaks the same words:
// both get SHAPE MODE TYPE as arguments and RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT in the environment; each line "N" on standard input
// asks for N steps and is answered with their seconds and losses; the end of the input is answered with the peak of resident memory.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/try.h"
#include "engine/autocast.h"
#include "engine/comm/env.h"
#include "engine/comm/group.h"
#include "engine/model/gpt.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/cpu.h"
#include "os/files.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;

struct Shape {
  model::GptShape gpt;
  int64_t batch;
};
const std::map<std::string, Shape> kShapes = {
    {"gpt", {{.vocabulary = 8192, .context = 256, .layers = 6, .heads = 6, .width = 384}, 8}},
    {"small", {{.vocabulary = 256, .context = 32, .layers = 2, .heads = 4, .width = 64}, 4}},
};

struct Mode {
  parallel::Stage stage = parallel::Stage::kDdp;
  bool shared = false;  // one copy of the parameters for all ranks of the host
};
const std::map<std::string, Mode> kModes = {
    {"plain", {}},
    {"ddp", {}},
    {"zero1", {parallel::Stage::kZero1}},
    {"zero2", {parallel::Stage::kZero2}},
    {"zero3", {parallel::Stage::kZero3}},
    {"shared", {parallel::Stage::kZero1, true}},
};

class Training {
 public:
  Training(const Shape& shape, comm::Group& group, bool bf16, const model::GptExecution& execution)
      : shape_(shape), group_(group), bf16_(bf16), gpt_(shape.gpt, execution) {}

  base::Status begin(const Mode& mode) {
    parallel::Options options;
    options.stage = mode.stage;
    options.share_parameters = mode.shared;
    options.groups = {{"decayed", 1, 0.1}, {"plain", 1, 0}};
    options.group_of = [](std::string_view, const at::Tensor& value) { return value.dim() > 1 ? 0 : 1; };
    TRY_ASSIGN(parallel_, parallel::DataParallel::wrap(*gpt_, group_, options));
    parallel_->initialise([this] { gpt_->init(1); });
    optimizer_.emplace(parallel_->rows(), parallel_->groups(), optim::AdamWOptions{0.9, 0.95, 1e-8});
    return base::ok();
  }

  double step() {
    at::Generator generator = at::detail::createCPUGenerator();
    generator.set_current_seed(static_cast<uint64_t>(1000 + steps_++ * group_.world() + group_.rank()));
    at::Tensor text = at::randint(0, shape_.gpt.vocabulary, {shape_.batch, shape_.gpt.context + 1}, generator, at::kLong);
    at::Tensor loss;
    {
      AutocastScope scope(at::kCPU, {bf16_, at::kBFloat16});
      const model::SummedLoss summed = gpt_->loss(text.narrow(1, 0, shape_.gpt.context), text.narrow(1, 1, shape_.gpt.context));
      loss = summed.sum / static_cast<double>(summed.targets);
    }
    parallel_->backward(loss);
    parallel_->step(*optimizer_, {.lr = 1e-3});
    return loss.item<double>();
  }

 private:
  const Shape& shape_;
  comm::Group& group_;
  bool bf16_;
  model::Gpt gpt_;
  std::unique_ptr<parallel::DataParallel> parallel_;
  std::optional<optim::AdamW> optimizer_;
  int64_t steps_ = 0;
};

std::string peak_memory() {
  const std::string status = os::read_file("/proc/self/status", 1 << 16).value();
  const size_t at = status.find("VmHWM:") + 6;
  return std::to_string(std::atoll(status.c_str() + at));
}

base::Status run(const std::string& shape, const Mode& mode, const std::string& type, const model::GptExecution& execution) {
  TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));
  train::keep_freed_memory();
  train::use_threads(env);
  TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, at::kCPU));
  Training training(kShapes.at(shape), *group, type == "bf16", execution);
  TRY(training.begin(mode));
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const int steps = std::atoi(line.c_str());
    std::string losses;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) losses += fmt::format(" {:.6f}", training.step());
    fmt::print("{:.6f}{}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), losses);
    std::fflush(stdout);
  }
  fmt::print("{}\n", peak_memory());
  std::fflush(stdout);
  group->leave();
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3 || !kShapes.contains(arguments[0]) || !kModes.contains(arguments[1])) {
    std::fputs("usage: train_speed gpt|small plain|ddp|zero1|zero2|zero3|shared fp32|bf16 [fused|plain]\n", stderr);
    return 2;
  }
  model::GptExecution execution;
  if (arguments.size() > 3 && arguments[3] == "plain") execution.kernels = model::Kernels::kPlain;
  base::Status status = run(arguments[0], kModes.at(arguments[1]), arguments[2], execution);
  if (!status.ok()) std::fputs(status.error().render().c_str(), stderr);
  return status.ok() ? 0 : 1;
}
