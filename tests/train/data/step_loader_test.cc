// Steps: the same for every number of workers, exact after a restore, whole for every number of ranks, and never a hang.
#include "engine/data/step_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "engine/data/plan/sampler.h"
#include "engine/data/sets.h"
#include "engine/data/windows.h"
#include "ranks.h"
#include "sets.h"

using namespace phalanx;

namespace {

using namespace engine::data;

std::vector<std::string> some_steps(StepLoader& loader, int many) {
  std::vector<std::string> steps;
  for (int i = 0; i < many; ++i) {
    auto step = loader.next();
    steps.push_back(step.ok() ? sets::to_text(*step) : step.error().render());
  }
  return steps;
}

LoaderOptions options_of(int world, int rank, int64_t rows, Remainder remainder = Remainder::kDrop) {
  LoaderOptions options;
  options.plan = {.world = world, .rank = rank, .rows = rows, .shuffle = true, .seed = 11, .remainder = remainder};
  return options;
}

// The item numbers of a step, in the order of its rows: the first token of a ragged item is its number.
std::vector<int64_t> items_of(const Step& step) {
  std::vector<int64_t> items;
  for (const MicroBatch& micro : step.micro)
    for (int64_t row = 0; row < micro.rows; ++row) items.push_back(micro.at("tokens")[row][0].item<int64_t>());
  return items;
}

TEST(StepLoader, WindowsComeInTheSamplersOrderByteForByte) {
  constexpr int64_t kContext = 16, kRows = 6, kWindows = 101;
  ranks::TempFolder folder;
  const std::string text = ranks::golden_text(kContext * kWindows + 9);
  sets::write(folder / "text", text);
  auto file = sets::map(folder / "text");
  for (int world : {1, 2, 3})
    for (int rank = 0; rank < world; ++rank) {
      TokenView bytes{file->bytes().data(), 1, file->bytes().size()};
      auto set = std::make_shared<WindowDataset>(file, bytes, 0, bytes.count, kContext);
      auto loader = StepLoader::create(set, options_of(world, rank, kRows)).value();
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        const auto order = distributed_indices({kWindows, world, rank, true, 11, true}, epoch);
        const int64_t steps = static_cast<int64_t>(order.size()) / kRows;
        ASSERT_EQ(loader->steps_per_epoch(), steps);
        for (int64_t number = 0; number < steps; ++number) {
          const Step step = loader->next().value();
          ASSERT_EQ(step.micro.size(), 1u);
          EXPECT_EQ(step.targets, kRows * kContext);
          for (int64_t row = 0; row < kRows; ++row) {
            const char* window = text.data() + order[static_cast<size_t>(number * kRows + row)] * kContext;
            const int64_t* tokens = step.micro[0].at("tokens")[row].data_ptr<int64_t>();
            const int64_t* targets = step.micro[0].at("targets")[row].data_ptr<int64_t>();
            for (int64_t i = 0; i < kContext; ++i) {
              ASSERT_EQ(tokens[i], static_cast<unsigned char>(window[i])) << "step " << number << ", row " << row;
              ASSERT_EQ(targets[i], static_cast<unsigned char>(window[i + 1])) << "step " << number << ", row " << row;
            }
          }
        }
      }
    }
}

TEST(StepLoader, OptionsThatMakeNoSenseAreAnErrorAndNotTheEndOfTheProgram) {
  auto refused = [](const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions options;
    options.plan.rows = 4;
    change(options);
    auto loader = StepLoader::create(sets::ragged(10), options);
    return loader.ok() ? std::string() : loader.error().message;
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_EQ(refused([](auto& o) { o.plan.rows = 0; }), "a step cannot have 0 rows per rank");
  EXPECT_EQ(refused([](auto& o) { o.plan.rank = 2; }), "rank 2 is out of range for 1 ranks");
  EXPECT_EQ(refused([](auto& o) { o.accumulate = 3; }), "the rows of a step cannot be divided into equal micro-batches");
  EXPECT_EQ(refused([](auto& o) { o.prefetch = 0; }), "the options of the loader are invalid");
  EXPECT_THROW(ConcatDataset({}), std::invalid_argument);
}

TEST(StepLoader, OrderDoesNotDependOnWorkers) {
  for (Remainder remainder : {Remainder::kDrop, Remainder::kPad, Remainder::kKeep}) {
    LoaderOptions options = options_of(2, 1, 6, remainder);
    options.accumulate = 3;
    const auto alone = some_steps(*StepLoader::create(sets::ragged(67), options).value(), 40);
    for (int workers = 1; workers <= 8; ++workers) {
      options.workers = workers;
      options.prefetch = 1 + workers % 3;
      EXPECT_EQ(some_steps(*StepLoader::create(sets::ragged(67), options).value(), 40), alone) << workers;
    }
  }
}

// Together the ranks take, row by row, what one rank takes; with kKeep every item comes once.
TEST(StepLoader, StepsAreTheSameForEveryNumberOfRanks) {
  for (Remainder remainder : {Remainder::kDrop, Remainder::kKeep}) {
    auto alone = StepLoader::create(sets::ragged(50), options_of(1, 0, 12, remainder)).value();
    for (int world : {2, 3, 4, 6, 12}) {
      ASSERT_TRUE(alone->start(0).ok());
      std::vector<std::unique_ptr<StepLoader>> loaders;
      for (int rank = 0; rank < world; ++rank)
        loaders.push_back(StepLoader::create(sets::ragged(50), options_of(world, rank, 12 / world, remainder)).value());
      for (int64_t number = 0; number < 3 * *alone->steps_per_epoch(); ++number) {
        const Step whole = alone->next().value();
        std::vector<int64_t> merged(static_cast<size_t>(whole.rows));
        int64_t targets = 0, rows = 0;
        for (int rank = 0; rank < world; ++rank) {
          const Step part = loaders[static_cast<size_t>(rank)]->next().value();
          const auto items = items_of(part);
          for (size_t row = 0; row < items.size(); ++row)
            merged.at(row * static_cast<size_t>(world) + static_cast<size_t>(rank)) = items[row];
          targets += part.targets;
          rows += part.rows;
          EXPECT_EQ(part.rows_of_all, whole.rows);
          EXPECT_EQ(part.last_of_epoch, whole.last_of_epoch);
        }
        EXPECT_EQ(merged, items_of(whole)) << world << " ranks, step " << number;
        EXPECT_EQ(targets, whole.targets);
        EXPECT_EQ(rows, whole.rows);
      }
    }
  }
}

TEST(StepLoader, UnevenRanksKnowTheirNumberOfSteps) {
  std::multiset<int64_t> seen;
  for (int rank = 0; rank < 4; ++rank) {
    auto loader = StepLoader::create(sets::ragged(18), options_of(4, rank, 2, Remainder::kKeep)).value();
    EXPECT_EQ(loader->steps_per_epoch(), 3);
    EXPECT_EQ(loader->own_steps_per_epoch(), rank < 2 ? 3 : 2);
    for (int number = 0; number < 3; ++number) {
      const Step step = loader->next().value();
      for (int64_t item : items_of(step)) seen.insert(item);
      EXPECT_EQ(step.rows, number < 2 ? 2 : rank < 2 ? 1 : 0);
      EXPECT_EQ(step.micro.empty(), step.rows == 0);
      EXPECT_EQ(step.last_of_epoch, number == 2);
    }
  }
  EXPECT_EQ(seen.size(), 18u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 18u);
}

TEST(StepLoader, PadFollowsTheDistributedSampler) {
  for (int rank = 0; rank < 8; ++rank) {
    LoaderOptions options = options_of(8, rank, 2, Remainder::kPad);
    auto loader = StepLoader::create(sets::ragged(3), options).value();  // more ranks than items
    for (int64_t epoch = 0; epoch < 4; ++epoch)
      EXPECT_EQ(items_of(loader->next().value()), distributed_indices({3, 8, rank, true, 11, false}, epoch));
  }
}

// At every step of three epochs: what follows a restored position is what followed the position when it was saved.
TEST(StepLoader, PositionIsExactAtEveryStep) {
  for (Remainder remainder : {Remainder::kDrop, Remainder::kPad, Remainder::kKeep})
    for (int world : {1, 2, 4}) {
      LoaderOptions options = options_of(world, world - 1, 8 / world, remainder);
      options.accumulate = 2;
      auto whole = StepLoader::create(sets::ragged(43), options).value();
      const int steps = 3 * static_cast<int>(*whole->steps_per_epoch());
      std::vector<base::Json> states{whole->state()};
      std::vector<std::string> texts;
      for (int i = 0; i < steps + 3; ++i) {
        texts.push_back(sets::to_text(whole->next().value()));
        states.push_back(whole->state());
      }
      options.workers = 2;
      auto other = StepLoader::create(sets::ragged(43), options).value();
      for (int i = 0; i < steps; ++i) {
        const base::Json saved = base::parse_json(base::to_text(states[static_cast<size_t>(i)])).value();
        auto restored = other->restore(saved);
        ASSERT_TRUE(restored.ok()) << restored.error().render();
        EXPECT_EQ(other->state(), saved);
        for (int k = 0; k < 3; ++k) EXPECT_EQ(sets::to_text(other->next().value()), texts[static_cast<size_t>(i + k)]) << i;
      }
    }
}

// A run of 2 ranks that goes on with 1, 4 or 3 ranks sees the items that it has not seen yet, in the same steps.
TEST(StepLoader, PositionIsTakenUpByAnotherNumberOfRanks) {
  auto two = StepLoader::create(sets::ragged(100), options_of(2, 0, 6, Remainder::kKeep)).value();
  auto reference = StepLoader::create(sets::ragged(100), options_of(1, 0, 12, Remainder::kKeep)).value();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(two->next().ok());
    ASSERT_TRUE(reference->next().ok());
  }
  const std::vector<int64_t> expected = items_of(reference->next().value());
  for (int world : {1, 3, 4}) {
    std::vector<int64_t> merged(12);
    for (int rank = 0; rank < world; ++rank) {
      auto loader = StepLoader::create(sets::ragged(100), options_of(world, rank, 12 / world, Remainder::kKeep)).value();
      ASSERT_TRUE(loader->restore(two->state()).ok());
      const auto items = items_of(loader->next().value());
      for (size_t row = 0; row < items.size(); ++row) merged[row * static_cast<size_t>(world) + static_cast<size_t>(rank)] = items[row];
    }
    EXPECT_EQ(merged, expected) << world;
  }
}

TEST(StepLoader, RefusesPositionsThatAreNotIts) {
  auto loader = StepLoader::create(sets::ragged(100), options_of(1, 0, 10)).value();
  const auto first = sets::to_text(loader->next().value());
  base::Json good = loader->state();
  auto why = [&](auto change) {
    base::Json bad = good;
    change(bad);
    auto status = loader->restore(bad);
    return status.ok() ? "accepted" : status.error().render();
  };
  EXPECT_NE(why([](auto& j) { j["places"] = 5; }).find("a step now takes 10"), std::string::npos);
  EXPECT_NE(why([](auto& j) { j["places"] = -10; }).find("not numbers from 0"), std::string::npos);
  EXPECT_NE(why([](auto& j) { j["seed"] = "12"; }).find("the seed was \"12\" and is \"11\""), std::string::npos);
  EXPECT_NE(why([](auto& j) { j["size"] = 99; }).find("the number of items was 99 and is 100"), std::string::npos);
  EXPECT_NE(why([](auto& j) { j.erase("fingerprint"); }).find("the content of the data"), std::string::npos);
  EXPECT_NE(why([](auto& j) { j["version"] = 2; }).find("version 1"), std::string::npos);
  EXPECT_NE(why([](auto& j) { j = "x"; }).find("version 1"), std::string::npos);
  EXPECT_EQ(why([](auto& j) { j["places"] = 0; }), "accepted");
  EXPECT_EQ(sets::to_text(loader->next().value()), first);
}

TEST(StepLoader, AFailedRestoreChangesNothing) {
  LoaderOptions options = options_of(1, 0, 10);
  auto expected = some_steps(*StepLoader::create(sets::ragged(100), options).value(), 6);
  options.workers = 3;
  auto loader = StepLoader::create(sets::ragged(100), options).value();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(sets::to_text(loader->next().value()), expected[i]);
    EXPECT_FALSE(loader->restore(base::Json::object()).ok());
  }
}

TEST(StepLoader, ErrorsOfItemsReachTheCallerAndStay) {
  for (int workers : {0, 1, 4})
    for (int way : {0, 1, 2}) {
      auto set = std::make_shared<sets::Made>(40, [way](int64_t index, ItemRandom& random) -> base::Result<Sample> {
        if (index != 17) return sets::ragged_item(index, random);
        if (way == 0) return base::fail(base::ErrorKind::kConfig, "rotten");
        if (way == 1) throw std::runtime_error("rotten\nstack of calls");
        throw 7;
      });
      LoaderOptions options = options_of(1, 0, 4);
      options.plan.shuffle = false;
      options.workers = workers;
      auto loader = StepLoader::create(set, options).value();
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(loader->next().ok());
      const base::Json before = loader->state();
      for (int again = 0; again < 3; ++again) {
        auto step = loader->next();
        ASSERT_FALSE(step.ok());
        EXPECT_NE(step.error().render().find("reading item 17 of \"made\""), std::string::npos) << step.error().render();
        EXPECT_NE(step.error().render().find(way == 2 ? "not a std::exception" : "rotten"), std::string::npos);
        EXPECT_EQ(step.error().render().find("stack of calls"), std::string::npos);
      }
      EXPECT_EQ(loader->state(), before) << "the position stays before the step that has failed";
      ASSERT_TRUE(loader->start(0).ok());
      EXPECT_TRUE(loader->next().ok()) << "another place can be read";
    }
}

TEST(StepLoader, ItemsThatDoNotFitAreNamed) {
  auto set = std::make_shared<sets::Made>(8, [](int64_t index, ItemRandom& random) -> base::Result<Sample> {
    Sample sample = sets::ragged_item(index, random);
    if (index == 5) sample[2].name = "other";
    if (index == 3) sample[0].value = sample[0].value.to(at::kInt);
    return sample;
  });
  LoaderOptions options = options_of(1, 0, 2);
  options.plan.shuffle = false;
  auto loader = StepLoader::create(set, options).value();
  ASSERT_TRUE(loader->next().ok());
  EXPECT_NE(loader->next().error().render().find("\"tokens\" is Int [4] in item 1 and Long [3] in item 0"), std::string::npos);
  ASSERT_TRUE(loader->restore(base::parse_json(base::to_text(loader->state())).value()).ok());
  EXPECT_FALSE(loader->next().ok());
}

TEST(StepLoader, PrefetchIsBounded) {
  std::atomic<int64_t> read{0};
  auto set = std::make_shared<sets::Made>(1'000'000, [&](int64_t index, ItemRandom& random) -> base::Result<Sample> {
    ++read;
    return sets::ragged_item(index, random);
  });
  LoaderOptions options = options_of(1, 0, 5);
  options.workers = 3;
  options.prefetch = 2;
  auto loader = StepLoader::create(set, options).value();
  for (int64_t taken = 0; taken < 50; ++taken) {
    EXPECT_LE(read.load(), (taken + 6) * 5);
    ASSERT_TRUE(loader->next().ok());
  }
}

TEST(StepLoader, EndsCleanlyWhileWorkersRead) {
  for (int round = 0; round < 200; ++round) {
    LoaderOptions options = options_of(1, 0, 4);
    options.workers = 1 + round % 8;
    auto loader = StepLoader::create(sets::ragged(64), options).value();
    for (int i = 0; i < round % 5; ++i) ASSERT_TRUE(loader->next().ok());
  }
}

TEST(StepLoader, TooFewItemsAreRefused) {
  EXPECT_NE(StepLoader::create(sets::ragged(0), options_of(1, 0, 4)).error().render().find("contains no items"), std::string::npos);
  const std::string error = StepLoader::create(sets::ragged(7), options_of(2, 0, 4)).error().render();
  EXPECT_NE(error.find("it contains 7 items, but a step takes 8 (2 ranks × 4)"), std::string::npos) << error;
  EXPECT_TRUE(StepLoader::create(sets::ragged(7), options_of(2, 0, 4, Remainder::kKeep)).ok());
}

TEST(ItemRandom, DependsOnSeedEpochAndItemOnly) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (int64_t epoch = 0; epoch < 10; ++epoch)
      for (int64_t item = 0; item < 10; ++item) first.insert(ItemRandom(seed, epoch, item).next());
  EXPECT_EQ(first.size(), 1000u);
  ItemRandom random(1, 2, 3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    sum += value;
    ASSERT_LT(random.below(7), 7u);
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

}  // namespace
