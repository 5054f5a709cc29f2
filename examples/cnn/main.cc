// A convolutional network for 28 × 28 digits, trained by all ranks together.
//
//   cnn [IMAGES LABELS]     two IDX files as MNIST's (train-images-idx3-ubyte, train-labels-idx1-ubyte); without them digits are drawn
//
//   ./cnn                                       one rank
//   phalanx run --nproc-per-node 2 -- ./cnn     two; any hosts with -H
//   torchrun --nproc_per_node 2 --no_python ./cnn
//
// The model is a plain torch::nn::Module. What makes the training a parallel one is marked (1) to (6).
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "engine/comm/group.h"
#include "engine/data/sets.h"
#include "engine/data/step_loader.h"
#include "engine/optim/schedule.h"
#include "engine/optim/sgd.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/cpu.h"

namespace {

using namespace phalanx;
using namespace phalanx::engine;

struct CnnImpl : torch::nn::Module {
  CnnImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)));
    norm1 = register_module("norm1", torch::nn::BatchNorm2d(8));
    conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).padding(1)));
    norm2 = register_module("norm2", torch::nn::BatchNorm2d(16));
    out = register_module("out", torch::nn::Linear(16 * 7 * 7, 10));
  }
  at::Tensor forward(at::Tensor x) {  // [rows, 1, 28, 28] -> [rows, 10]
    x = at::max_pool2d(at::relu(norm1(conv1(x))), 2);
    x = at::max_pool2d(at::relu(norm2(conv2(x))), 2);
    return out(x.flatten(1));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Cnn);

struct Digits {
  at::Tensor images;  // [count, 1, 28, 28], 0 to 1
  at::Tensor labels;  // [count] int64
};

// Digits of 5 × 7 dots, three pixels wide each, somewhere in the picture, under noise. The same on every rank and machine.
Digits draw(int64_t count, uint64_t seed) {
  constexpr const char* kDots[10] = {"01110100011001110101110011000101110", "00100011000010000100001000010001110",
                                     "01110100010000100010001000100011111", "11111000100010000010000011000101110",
                                     "00010001100101010010111110001000010", "11111100001111000001000011000101110",
                                     "00110010001000011110100011000101110", "11111000010001000100010000100001000",
                                     "01110100011000101110100011000101110", "01110100011000101111000010001001100"};
  std::mt19937_64 random(seed);
  at::Tensor images = at::empty({count, 1, 28, 28}), labels = at::empty({count}, at::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const auto digit = static_cast<int64_t>(random() % 10);
    const auto left = static_cast<int64_t>(random() % 13), top = static_cast<int64_t>(random() % 7);
    labels.data_ptr<int64_t>()[i] = digit;
    float* pixels = images.data_ptr<float>() + i * 28 * 28;
    for (int64_t p = 0; p < 28 * 28; ++p) {
      const int64_t x = p % 28 - left, y = p / 28 - top;
      const bool ink = x >= 0 && x < 15 && y >= 0 && y < 21 && kDots[digit][y / 3 * 5 + x / 3] == '1';
      pixels[p] = (ink ? 0.6f : 0.0f) + 0.4f * static_cast<float>(random() % 1000) / 1000;
    }
  }
  return {images, labels};
}

// An IDX file: two zero bytes, the type (8: bytes), the number of dimensions, each as 4 bytes from the highest on, then the bytes.
base::Result<at::Tensor> read_idx(const std::string& path, const std::vector<int64_t>& row) {
  std::ifstream in(path, std::ios::binary);
  auto number = [&] {
    unsigned char b[4] = {};
    in.read(reinterpret_cast<char*>(b), 4);
    return int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | int64_t{b[3]};
  };
  const auto bad = [&](const char* why) { return base::fail(base::ErrorKind::kConfig, "cannot read " + path).because(why); };
  if (!in) return bad("it cannot be opened");
  if (number() != 0x800 + 1 + static_cast<int64_t>(row.size())) return bad("it is not an IDX file of bytes of this many dimensions");
  std::vector<int64_t> shape = {number()};
  if (shape[0] < 1 || shape[0] > 10'000'000) return bad("it has no rows, or more than ten million");
  for (int64_t wanted : row) {
    if (number() != wanted) return bad("its rows are not 28 x 28");
    shape.push_back(wanted);
  }
  at::Tensor bytes = at::empty(shape, at::kByte);
  if (!in.read(reinterpret_cast<char*>(bytes.data_ptr()), bytes.numel())) return bad("it ends too early");
  return bytes;
}

base::Result<Digits> read_digits(const std::string& images, const std::string& labels) {
  PHALANX_TRY_ASSIGN(at::Tensor pixels, read_idx(images, {28, 28}));
  PHALANX_TRY_ASSIGN(at::Tensor numbers, read_idx(labels, {}));
  return Digits{pixels.unsqueeze(1).to(at::kFloat) / 255, numbers.to(at::kLong)};
}

// (4) All ranks go through the set together: of every step's 64 rows each takes its share, in the order of PyTorch's
// DistributedSampler. kKeep: each item exactly once, so the last step of an epoch may be uneven, and no rank waits for another.
base::Result<std::unique_ptr<data::StepLoader>> load(const std::string& name, const Digits& digits, comm::Group& group, bool shuffle) {
  PHALANX_TRY_ASSIGN(auto set, data::TensorDataset::create(name, {{"images", digits.images}, {"labels", digits.labels}}));
  PHALANX_TRY(comm::require_same(group, name, set->fingerprint()));
  data::LoaderOptions options;
  options.plan = {.world = group.world(), .rank = group.rank(), .rows = 64 / group.world(), .shuffle = shuffle, .seed = 1};
  options.plan.remainder = data::Remainder::kKeep;
  options.workers = 1;
  return data::StepLoader::create(set, options);
}

// The share of pictures that are named rightly, of all ranks' pictures.
base::Result<double> accuracy(Cnn& cnn, data::StepLoader& loader, comm::Group& group) {
  at::NoGradGuard no_grad;
  cnn->eval();
  PHALANX_TRY(loader.start(0));
  at::Tensor counts = at::zeros({2}, at::kDouble);  // right, all
  for (int64_t i = 0; i < *loader.steps_per_epoch(); ++i) {
    PHALANX_TRY_ASSIGN(data::Step step, loader.next());
    for (const data::MicroBatch& micro : step.micro) {
      counts[0] += cnn(micro.at("images")).argmax(1).eq(micro.at("labels")).sum();
      counts[1] += micro.rows;
    }
  }
  cnn->train();
  group.all_reduce(counts, comm::Reduction::kSum, "accuracy");
  return (counts[0] / counts[1]).item<double>();
}

base::Status run(const std::vector<std::string>& files) {
  PHALANX_TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));  // (1) what the launcher has set; alone: one rank
  train::use_threads(env);
  PHALANX_TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, at::kCPU));  // (2) the ranks meet

  base::Result<Digits> read = files.empty() ? draw(4096, 1) : read_digits(files[0], files[1]);
  PHALANX_TRY(comm::agree(*group, read.ok() ? base::ok() : base::Status(read.error()),
                          "reading the digits"));  // one rank's error is every rank's
  const Digits& digits = *read;
  const int64_t tests = digits.labels.size(0) / 8, learned = digits.labels.size(0) - tests;
  const auto some = [&](int64_t first, int64_t count) {
    return Digits{digits.images.narrow(0, first, count), digits.labels.narrow(0, first, count)};
  };
  PHALANX_TRY_ASSIGN(auto training, load("digits", some(0, learned), *group, true));
  PHALANX_TRY_ASSIGN(auto test, load("test digits", some(learned, tests), *group, false));

  at::manual_seed(1);
  Cnn cnn;
  // (3) All ranks take rank 0's weights. kSum, because below each rank divides its sum of losses by the rows of all ranks.
  PHALANX_TRY_ASSIGN(auto parallel, parallel::DataParallel::wrap(*cnn, *group, {.reduce = parallel::Reduce::kSum}));
  optim::Sgd sgd(parallel->rows(), parallel->groups(), {.momentum = 0.9});

  const int64_t epochs = 2, steps = epochs * *training->steps_per_epoch();
  const optim::Schedule schedule{.curve = optim::Curve::kCosine, .lr = 0.05, .warmup = 10, .steps = steps};
  for (int64_t i = 0; i < steps; ++i) {
    PHALANX_TRY_ASSIGN(data::Step step, training->next());
    at::Tensor loss;  // stays undefined on a rank that has no rows left in this step: it takes part and adds nothing
    for (const data::MicroBatch& micro : step.micro)
      loss = at::cross_entropy_loss(cnn(micro.at("images")), micro.at("labels"), {}, at::Reduction::Sum) / step.rows_of_all;
    parallel->backward(loss);                     // (5) gradients of all ranks, summed while backward goes on
    parallel->step(sgd, {.lr = schedule.at(i)});  // (6) every rank the same; then the running means are rank 0's
    if (group->rank() == 0 && i % 20 == 0 && loss.defined())
      std::printf("step %lld loss %.4f\n", static_cast<long long>(i), loss.item<double>() * group->world());
  }
  PHALANX_TRY_ASSIGN(const double right, accuracy(cnn, *test, *group));
  if (group->rank() == 0) std::printf("accuracy %.4f of %lld test digits\n", right, static_cast<long long>(tests));
  group->leave();
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  base::Status done = base::ok();
  if (argc != 1 && argc != 3) done = base::fail(base::ErrorKind::kUsage, "usage: cnn [IMAGES LABELS]");
  try {
    if (done.ok()) done = run({argv + 1, argv + argc});
  } catch (const std::exception& failure) {  // torch's, and of collectives whose other end is gone
    done = base::fail(base::ErrorKind::kJobFailed, "this rank cannot go on").because(comm::reason(failure));
  }
  if (done.ok()) return 0;
  std::fputs(done.error().render().c_str(), stderr);
  return base::exit_code(done.error().kind);
}
