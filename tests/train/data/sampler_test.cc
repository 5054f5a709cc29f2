// The order of the data against torch.utils.data.DistributedSampler: frozen vectors, and the sampler itself asked live.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/text.h"
#include "engine/data/plan/sampler.h"
#include "os/files.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using engine::data::SamplerOptions;

TEST(Sampler, FrozenVectors) {
  const base::Json golden = ranks::golden();
  for (const base::Json& vector : golden["sampler"]) {
    SamplerOptions options{vector["samples"].get<int64_t>(), vector["world"].get<int>(),     0,
                           vector["shuffle"].get<bool>(),    vector["seed"].get<uint64_t>(), vector["drop_last"].get<bool>()};
    for (options.rank = 0; options.rank < options.world; ++options.rank) {
      auto indices = engine::data::distributed_indices(options, vector["epoch"].get<int64_t>());
      EXPECT_EQ(indices, vector["ranks"][static_cast<size_t>(options.rank)].get<std::vector<int64_t>>()) << vector.dump();
      EXPECT_EQ(static_cast<int64_t>(indices.size()), engine::data::distributed_count(options));
    }
  }
}

struct Question {
  SamplerOptions options;
  int64_t epoch, rows;
  bool drop_batch;
};

// Every tenth set is large, every twelfth empty; sets smaller than the world, and seeds over all 64 bits, come often.
Question random_question(std::mt19937_64& random, int number) {
  Question question{};
  SamplerOptions& options = question.options;
  options.world = static_cast<int>(random() % (number % 7 == 0 ? 64 : 9) + 1);
  options.rank = static_cast<int>(random() % static_cast<unsigned>(options.world));
  options.samples = number % 12 == 0 ? 0 : static_cast<int64_t>(random() % (number % 10 == 0 ? 5000 : 40) + 1);
  options.shuffle = random() % 4 != 0;
  constexpr uint64_t kLargest = UINT64_MAX - 100;  // seed + epoch must not pass 2^64 in Python
  options.seed = random() % 3 == 0 ? random() % kLargest : random() % 2 == 0 ? random() % 100 : (uint64_t{1} << 32) + random() % 100;
  options.drop_last = random() % 2 == 0;
  question.epoch = static_cast<int64_t>(random() % 50);
  question.rows = static_cast<int64_t>(random() % 9 + 1);
  question.drop_batch = random() % 2 == 0;
  return question;
}

std::string our_answer(const Question& question) {
  std::string text, batches;
  for (int64_t index : engine::data::distributed_indices(question.options, question.epoch)) text += std::to_string(index) + " ";
  for (const auto& batch : engine::data::distributed_batches(question.options, question.epoch, question.rows, question.drop_batch))
    batches += fmt::format("{}{}", batches.empty() ? "" : ";", fmt::join(batch, " "));
  return fmt::format("{}|{} {} {}", text, batches, engine::data::distributed_count(question.options),
                     engine::data::distributed_batch_count(question.options, question.rows, question.drop_batch));
}

TEST(Sampler, EqualsPyTorchOnSixThousandParameters) {
  if (std::system("/usr/bin/python3 -c 'import torch' 2>/dev/null") != 0)
    GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  ranks::TempFolder folder;
  std::mt19937_64 random(20);
  std::ofstream questions(folder / "questions");
  std::vector<Question> asked;
  for (int i = 0; i < 6000; ++i) {
    const Question& q = asked.emplace_back(random_question(random, i));
    questions << q.options.samples << ' ' << q.options.world << ' ' << q.options.rank << ' ' << q.options.shuffle << ' ' << q.options.seed
              << ' ' << q.options.drop_last << ' ' << q.epoch << ' ' << q.rows << ' ' << q.drop_batch << '\n';
  }
  questions.close();
  const std::string command = fmt::format("/usr/bin/python3 '{}/data/sampler_oracle.py' < '{}' > '{}'", PHALANX_TRAIN_TESTS,
                                          folder / "questions", folder / "answers");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string answers = os::read_file(folder / "answers", 64 << 20).value();
  auto lines = base::split_lines(answers);
  ASSERT_EQ(lines.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(our_answer(asked[i]), lines[i]) << "question " << i;
}

}  // namespace
