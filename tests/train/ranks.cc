#include "ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/text.h"
#include "engine/comm/c10d_group.h"
#include "engine/train/trainer.h"
#include "os/files.h"

namespace ranks {

using engine::comm::Group;

void run(int world, const std::function<void(Group&)>& body) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      try {
        engine::comm::RankEnv alone;
        auto group = world == 1 ? engine::comm::join(alone, at::kCPU).value()
                                : engine::comm::make_c10d_group({store, rank == 0}, rank, world, at::kCPU, "127.0.0.1", "");
        body(*group);
        group->leave();
      } catch (const std::exception& failure) { ADD_FAILURE() << "rank " << rank << ": " << engine::comm::reason(failure); }
    });
  for (std::thread& thread : threads) thread.join();
}

TempFolder::TempFolder() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/phalanx-train-XXXXXX";
  path_ = mkdtemp(pattern.data());
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string golden_text(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(97 + (i * i / 3 + i / 7 + (i % 5) * 3) % 26));
  return text;
}

base::Json golden() {
  auto text = os::read_file(PHALANX_TRAIN_TESTS "/golden.json", 1 << 20);
  return base::parse_json(text.value()).value();
}

engine::train::Config small_config(const TempFolder& folder, const std::vector<std::string>& arguments) {
  const std::string corpus = folder / "corpus.txt";
  std::ofstream(corpus, std::ios::binary) << golden_text(16 * 40 + 1);
  const std::string yaml = fmt::format(
      "out: {}\nseed: 7\ndevice: cpu\ndata: {{corpus: {}, validation: 0}}\n"
      "model: {{layers: 2, heads: 2, width: 32, context: 16}}\ntrain: {{steps: 12, batch: 8, log_every: 1}}\n"
      "optimizer: {{lr: 3e-3, min_lr: 3e-4, warmup: 4, clip: 0.5}}\nvalidation: {{every: 0}}\n"
      "checkpoint: {{every: 0}}\nsample: {{bytes: 0}}\n",
      folder / "out", corpus);
  return engine::train::read_config(yaml, "small.yaml", arguments).value();
}

Outcome train(const engine::train::Config& config, int world) {
  Outcome outcome;
  std::mutex mutex;
  run(world, [&](Group& group) {
    engine::train::Progress progress(group.rank(), config.train.steps, config.train.log_every, -1);
    auto work = [&]() -> base::Status {
      TRY_ASSIGN(auto trainer, engine::train::Trainer::create(config, group, progress));
      TRY(trainer->begin());
      TRY(trainer->run());
      TRY(trainer->write_sample());
      if (group.rank() != 0) return base::ok();
      for (const auto& bucket : trainer->buckets())
        outcome.parameters.insert(outcome.parameters.end(), bucket.params.data_ptr<float>(),
                                  bucket.params.data_ptr<float>() + bucket.params.numel());
      return base::ok();
    };
    base::Status status = work();
    std::lock_guard lock(mutex);
    if (!status.ok()) outcome.errors.push_back(status.error().render());
  });
  auto log = os::read_file(config.out + "/log.jsonl", 1 << 20);
  for (std::string_view line : base::split_lines(log.ok() ? std::string_view(*log) : "")) {
    base::Json json = base::parse_json(line).value();
    int64_t step = base::get_int(json, "step").value();
    if (auto loss = base::get_number(json, "loss")) outcome.loss[step] = *loss;
    if (auto norm = base::get_number(json, "grad_norm")) outcome.grad_norm[step] = *norm;
  }
  return outcome;
}

}  // namespace ranks
