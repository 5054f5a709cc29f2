// What a rank holds of parameters, gradients and optimizer states, counted at the allocator, against ZeRO's formulas.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/comm/compat.h"
#include "engine/comm/make_group.h"
#include "engine/model/gpt.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "forwarding_group.h"
#include "ranks.h"
#include "sanitized.h"

using namespace phalanx;

namespace {

using engine::parallel::DataParallel;
using engine::parallel::Options;
using engine::parallel::Stage;
namespace optim = engine::optim;

// Counts the bytes of tensors that live, and the most that did, in this process.
class Counting final : public at::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  at::DataPtr allocate(size_t bytes) override { return counted(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
#else
  at::DataPtr allocate(size_t bytes) const override { return counted(bytes); }
#endif
  at::DeleterFnPtr raw_deleter() const override { return nullptr; }
  static inline std::atomic<int64_t> live{0}, peak{0};

 private:
  static at::DataPtr counted(size_t bytes) {
    auto* block = static_cast<char*>(std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64));
    *reinterpret_cast<size_t*>(block) = bytes;
    live += static_cast<int64_t>(bytes);
    int64_t now = live, most = peak;
    while (now > most && !peak.compare_exchange_weak(most, now)) {}
    return {block + 64, block,
            [](void* start) {
              live -= static_cast<int64_t>(*static_cast<size_t*>(start));
              std::free(start);
            },
            at::Device(at::kCPU)};
  }
};

// Counts windows as well, whose memory does not come from the allocator.
class CountingGroup final : public ForwardingGroup {
 public:
  using ForwardingGroup::ForwardingGroup;
  at::Tensor window(int64_t elements, at::ScalarType dtype) override {
    bytes += elements * static_cast<int64_t>(c10::elementSize(dtype));
    return ForwardingGroup::window(elements, dtype);
  }
  int64_t bytes = 0;
};

// 101 M parameters in eight blocks; a vocabulary this small keeps the units alike.
constexpr engine::model::GptShape kShape{.vocabulary = 512, .context = 8, .layers = 8, .heads = 8, .width = 1024};

// One rank in a process of its own, so that the allocator counts this rank only.
void one_rank(int rank, int world, Stage stage, uint16_t port, const std::string& result) {
  static Counting counting;
  c10::SetCPUAllocator(&counting, /*priority=*/100);
  engine::comm::RankEnv env;
  env.rank = rank;
  env.world = env.local_world = world;
  env.master_addr = "127.0.0.1";
  env.master_port = port;
  auto joined = engine::comm::join(env, at::kCPU).value();
  CountingGroup group(*joined);
  {
    engine::model::Gpt gpt(kShape);
    Options options;
    options.stage = stage;
    options.bucket_bytes = 4 << 20;
    options.persistent_elements = 5000;
    auto parallel = DataParallel::wrap(*gpt, group, options).value();
    parallel->initialise([&] {
      for (auto& parameter : gpt->parameters()) parameter.fill_(0.01);
    });
    optim::AdamW adamw(parallel->rows(), parallel->groups(), {});
    Counting::peak = Counting::live.load();
    at::Tensor tokens = at::zeros({1, 8}, at::kLong);
    parallel->backward(gpt->loss(tokens, tokens).sum);
    parallel->step(adamw, {.lr = 1e-4});
    int64_t largest = 0;
    for (const auto& unit : parallel->units()) largest = std::max(largest, unit.elements * 4);
    const auto use = parallel->memory();
    std::ofstream(result) << Counting::peak + group.bytes << ' ' << parallel->parameter_count() << ' ' << largest << ' ' << use.parameters
                          << ' ' << use.gradients;
  }
  group.leave();
}

struct Measured {
  double peak = 0, parameters = 0, largest = 0, own_parameters = 0, own_gradients = 0;
};

Measured measure(int world, Stage stage) {
  ranks::TempFolder folder;
  const uint16_t port = ranks::free_port();
  std::vector<pid_t> children;
  for (int rank = 0; rank < world; ++rank) {
    const std::string program = "/proc/self/exe";
    pid_t child = fork();
    if (child == 0) {
      const std::string arguments =
          fmt::format("{},{},{},{},{}", rank, world, static_cast<int>(stage), port, folder / fmt::format("rank{}", rank));
      setenv("PHALANX_MEMORY_RANK", arguments.c_str(), 1);
      if (!freopen("/dev/null", "w", stdout)) _exit(126);
      execl(program.c_str(), "train_parallel_test", "--gtest_filter=Memory.OneRank", nullptr);
      _exit(127);
    }
    children.push_back(child);
  }
  for (size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
    if (status != 0)
      for (pid_t child : children) kill(child, SIGKILL);  // the others would wait for it
  }
  Measured found;
  for (int rank = 0; rank < world; ++rank) {
    Measured one;
    std::ifstream(folder / fmt::format("rank{}", rank)) >> one.peak >> one.parameters >> one.largest >> one.own_parameters >>
        one.own_gradients;
    if (one.peak > found.peak) found = one;
  }
  return found;
}

// A child of the test below: one rank.
TEST(Memory, OneRank) {
  const char* arguments = std::getenv("PHALANX_MEMORY_RANK");
  if (!arguments) GTEST_SKIP() << "only as a rank of Memory.IsThatOfTheFormulas";
  int rank = 0, world = 0, stage = 0, port = 0, used = 0;
  ASSERT_EQ(std::sscanf(arguments, "%d,%d,%d,%d,%n", &rank, &world, &stage, &port, &used), 4);
  one_rank(rank, world, static_cast<Stage>(stage), static_cast<uint16_t>(port), arguments + used);
}

// fp32: 4 bytes of parameters, 4 of gradients, 8 of AdamW's states for each of P parameters, over N ranks. To it comes what is whole for a
// moment: a unit or bucket (U bytes) at a time, as each line says.
TEST(Memory, IsThatOfTheFormulas) {
  if (ranks::kAddressSanitizer) GTEST_SKIP() << "16 bytes for each of 101 M parameters and 4 ranks, once more and slower";
  std::printf("%-8s %6s %12s %12s %8s\n", "stage", "ranks", "formula MB", "counted MB", "ratio");
  for (int world : {2, 4})
    for (Stage stage : {Stage::kDdp, Stage::kZero1, Stage::kZero2, Stage::kZero3}) {
      const Measured found = measure(world, stage);
      ASSERT_GT(found.parameters, 100e6);
      const double p = found.parameters, n = world, u = found.largest;
      double formula = 0;
      switch (stage) {
        case Stage::kDdp: formula = 16 * p + u; break;  // U: the gradient that autograd has just made
        case Stage::kZero1: formula = 8 * p + 8 * p / n + u; break;
        case Stage::kZero2: formula = 4 * p + 12 * p / n + 3 * u; break;  // two carriers, and a bucket's gradients on their way there
        case Stage::kZero3: formula = 16 * p / n + 4 * u; break;          // two live units, two carriers
      }
      std::printf("%-8s %6d %12.1f %12.1f %8.3f\n", std::string(name_of(stage)).c_str(), world, formula / 1e6, found.peak / 1e6,
                  found.peak / formula);
      EXPECT_NEAR(found.peak / formula, 1, 0.05) << name_of(stage) << " on " << world << " ranks";
    }
}

}  // namespace
