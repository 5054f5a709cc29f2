// The order of the data against torch.utils.data.DistributedSampler: frozen vectors, and the sampler itself asked live.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/text.h"
#include "engine/data/loader.h"
#include "engine/data/sampler.h"
#include "os/files.h"
#include "ranks.h"

namespace {

using engine::data::SamplerOptions;

TEST(Sampler, FrozenVectors) {
  for (const base::Json& vector : ranks::golden()["sampler"]) {
    SamplerOptions options{vector["samples"].get<int64_t>(), vector["world"].get<int>(),     0,
                           vector["shuffle"].get<bool>(),    vector["seed"].get<uint64_t>(), vector["drop_last"].get<bool>()};
    for (options.rank = 0; options.rank < options.world; ++options.rank) {
      auto indices = engine::data::distributed_indices(options, vector["epoch"].get<int64_t>());
      EXPECT_EQ(indices, vector["ranks"][static_cast<size_t>(options.rank)].get<std::vector<int64_t>>()) << vector.dump();
      EXPECT_EQ(static_cast<int64_t>(indices.size()), engine::data::distributed_count(options));
    }
  }
}

TEST(Sampler, EqualsPyTorchOnRandomParameters) {
  if (std::system("/usr/bin/python3 -c 'import torch' 2>/dev/null") != 0)
    GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  ranks::TempFolder folder;
  std::mt19937_64 random(20);
  std::ofstream questions(folder / "questions");
  std::vector<std::pair<SamplerOptions, int64_t>> asked;
  for (int i = 0; i < 400; ++i) {
    SamplerOptions options;
    options.world = static_cast<int>(random() % 9 + 1);
    options.rank = static_cast<int>(random() % static_cast<unsigned>(options.world));
    options.samples = static_cast<int64_t>(random() % (i % 10 == 0 ? 5000 : 40) + 1);
    options.shuffle = random() % 4 != 0;
    options.seed = random() % 3 == 0 ? random() >> 2 : random() % 100;
    options.drop_last = random() % 2 == 0;
    const int64_t epoch = static_cast<int64_t>(random() % 50);
    questions << options.samples << ' ' << options.world << ' ' << options.rank << ' ' << options.shuffle << ' ' << options.seed << ' '
              << options.drop_last << ' ' << epoch << '\n';
    asked.emplace_back(options, epoch);
  }
  questions.close();
  const std::string command =
      fmt::format("/usr/bin/python3 " PHALANX_TRAIN_TESTS "/data/sampler_oracle.py < {} > {}", folder / "questions", folder / "answers");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string answers = os::read_file(folder / "answers", 64 << 20).value();
  auto lines = base::split_lines(answers);
  ASSERT_EQ(lines.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    std::string ours;
    for (int64_t index : engine::data::distributed_indices(asked[i].first, asked[i].second)) ours += std::to_string(index) + " ";
    EXPECT_EQ(ours, lines[i]) << "question " << i;
  }
}

// Whatever the number of ranks, the ranks together take the same windows in a step.
TEST(Loader, BatchesDoNotDependOnTheNumberOfRanks) {
  const std::string text = ranks::golden_text(16 * 37 + 5);
  constexpr int64_t kBatch = 8, kContext = 16;
  auto step_rows = [&](int world, int64_t step) {
    std::multiset<std::string> rows;
    for (int rank = 0; rank < world; ++rank) {
      engine::data::Loader loader(text, kContext, kBatch / world, {0, world, rank, true, 3, true});
      engine::data::Batch batch = loader.batch(step);
      for (int64_t row = 0; row < kBatch / world; ++row) {
        std::string bytes;
        for (int64_t i = 0; i < kContext; ++i) bytes.push_back(static_cast<char>(batch.tokens[row][i].item<int64_t>()));
        bytes.push_back(static_cast<char>(batch.targets[row][kContext - 1].item<int64_t>()));
        rows.insert(bytes);
      }
    }
    return rows;
  };
  for (int64_t step : {0, 3, 4, 11}) {  // 37 windows: 4 steps an epoch
    EXPECT_EQ(step_rows(1, step), step_rows(2, step));
    EXPECT_EQ(step_rows(1, step), step_rows(8, step));
    for (const std::string& row : step_rows(1, step)) EXPECT_NE(text.find(row), std::string::npos);
  }
}

}  // namespace
