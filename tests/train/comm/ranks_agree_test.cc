// What ranks tell each other, groups of some of them, and barriers.
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/comm/group.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using engine::comm::Group;
using engine::comm::Reduction;
using std::chrono::milliseconds;

// World, and hosts: 0: Gloo alone.
class RanksAgree : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static int world() { return std::get<0>(GetParam()); }
  static void run(const std::function<void(Group&)>& body) {
    const int hosts = std::get<1>(GetParam());
    if (hosts > 1) ranks::run_on_hosts(hosts, world(), body);
    else ranks::run(world(), body, options(hosts > 0));
  }

 public:
  static engine::comm::GroupOptions options(bool shared_memory) {
    engine::comm::GroupOptions options;
    options.shared_memory = shared_memory;
    return options;
  }
};

TEST_P(RanksAgree, Exchange) {
  run([](Group& group) {
    const auto text_of = [](int rank) {
      return rank == 1 ? std::string() : std::string(static_cast<size_t>(rank) * 1000 + 3, static_cast<char>('a' + rank));
    };
    const auto texts = engine::comm::exchange(group, text_of(group.rank()), "texts");
    ASSERT_EQ(texts.size(), static_cast<size_t>(group.world()));
    for (int rank = 0; rank < group.world(); ++rank) EXPECT_EQ(texts[static_cast<size_t>(rank)], text_of(rank));
    const std::string nothing;
    EXPECT_EQ(engine::comm::exchange(group, nothing, "nothing"), std::vector<std::string>(static_cast<size_t>(group.world())));
  });
}

TEST_P(RanksAgree, ATextThatIsTooLongFailsEverywhere) {
  run([](Group& group) {
    const std::string text(group.rank() == group.world() - 1 ? (1 << 20) + 1 : 1, 'x');
    EXPECT_THROW(engine::comm::exchange(group, text, "texts"), std::length_error);
  });
}

TEST_P(RanksAgree, RequireSame) {
  const int world = RanksAgree::world();
  run([world](Group& group) {
    EXPECT_TRUE(engine::comm::require_same(group, "the config", 0xfedcba9876543210u).ok());
    if (world < 2) return;
    // One bit, in a place where a sum of doubles would lose it.
    auto status = engine::comm::require_same(group, "the config", 0xfedcba9876543210u + (group.rank() == world - 1 ? 1u : 0u));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, base::ErrorKind::kConfig);
    EXPECT_EQ(status.error().message, "the ranks do not agree on the config");
    EXPECT_EQ(status.error().cause, fmt::format("rank {} differs from rank 0", world - 1));
  });
}

TEST_P(RanksAgree, Agree) {
  const int world = RanksAgree::world();
  run([world](Group& group) {
    EXPECT_TRUE(engine::comm::agree(group, base::ok(), "reading the checkpoint").ok());
    base::Status mine = base::ok();
    if (group.rank() == world - 1) mine = base::fail(base::ErrorKind::kUnfit, "no room on disk").because("3 bytes are free");
    auto status = engine::comm::agree(group, std::move(mine), "reading the checkpoint");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, base::ErrorKind::kUnfit);
    if (group.rank() == world - 1) {
      EXPECT_EQ(status.error().message, "no room on disk");
    } else {
      EXPECT_EQ(status.error().message, fmt::format("reading the checkpoint failed on rank {}", world - 1));
      EXPECT_EQ(status.error().cause, fmt::format("rank {}: no room on disk, because 3 bytes are free", world - 1));
    }
  });
}

TEST_P(RanksAgree, Split) {
  const int world = RanksAgree::world();
  run([world](Group& group) {
    // Even and odd ranks, in reverse.
    auto half = group.split(group.rank() % 2, -group.rank());
    const int members = (world - group.rank() % 2 + 1) / 2;
    EXPECT_EQ(half->world(), members);
    EXPECT_EQ(half->rank(), members - 1 - group.rank() / 2);
    at::Tensor ranks = at::full({2}, group.rank(), at::kInt);
    half->all_reduce(ranks, Reduction::kSum, "half");
    int sum = 0;
    for (int r = group.rank() % 2; r < world; r += 2) sum += r;
    EXPECT_EQ(ranks[0].item<int>(), sum);
    auto again = group.split(0, 0);
    EXPECT_EQ(again->rank(), group.rank());
    again->barrier("again", milliseconds{20000});
    again->leave();
    half->leave();
  });
}

TEST_P(RanksAgree, BarriersInARow) {
  run([](Group& group) {
    for (int i = 0; i < 20; ++i) group.barrier("round", milliseconds{20000});
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, RanksAgree, testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(0, 1)));
INSTANTIATE_TEST_SUITE_P(Hosts, RanksAgree, testing::Values(std::tuple(4, 2), std::tuple(6, 3)));

void expect_named(bool shared_memory) {
  std::mutex mutex;
  std::vector<std::string> said;
  const auto before = std::chrono::steady_clock::now();
  ranks::run_apart(
      4,
      [&](Group& group) {
        if (group.rank() == 2) return;
        try {
          group.barrier("before the save", milliseconds{700});
          ADD_FAILURE() << "nobody was missed";
        } catch (const std::exception& failure) {
          std::lock_guard lock(mutex);
          said.push_back(failure.what());
        }
      },
      RanksAgree::options(shared_memory));
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds{10000});
  ASSERT_EQ(said.size(), 3u);
  for (const std::string& one : said) {
    EXPECT_NE(one.find("before the save"), std::string::npos) << one;
    EXPECT_NE(one.find("rank 2"), std::string::npos) << one;
  }
}

TEST(RanksAgree, ABarrierNamesWhoNeverCame) { expect_named(true); }
TEST(RanksAgree, ABarrierOverGlooNamesWhoNeverCame) { expect_named(false); }

}  // namespace
