// Every operation × type × size × world, against what must come out, bit for bit.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "comm/calls.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using calls::Call;
using calls::What;
using engine::comm::Group;
using engine::comm::Reduction;

constexpr What kAll[] = {What::kSum, What::kMax, What::kReduceScatter, What::kAllGather, What::kBroadcast};

// World, and hosts: 0: Gloo alone.
class Operations : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static int world() { return std::get<0>(GetParam()); }
  static int hosts() { return std::max(std::get<1>(GetParam()), 1); }
  static void run(const std::function<void(Group&)>& body) {
    engine::comm::GroupOptions options;
    options.shared_memory = std::get<1>(GetParam()) > 0;
    options.check = true;
    if (hosts() > 1) ranks::run_on_hosts(hosts(), world(), body);
    else ranks::run(world(), body, options);
  }
};

TEST_P(Operations, EveryTypeAndSize) {
  run([](Group& group) {
    int64_t seed = 0;
    for (What what : kAll)
      for (at::ScalarType dtype : calls::kTypes)
        for (int64_t elements : {0, 1, 3, 7, 1023, 20001}) {
          const int root = static_cast<int>(++seed) % group.world();
          calls::Started(group, {what, dtype, elements, root, seed, seed % 2 == 0, false, hosts()}).finish();
        }
  });
}

TEST_P(Operations, LargeOnes) {
  run([](Group& group) {
    int64_t seed = 100;
    for (What what : kAll)
      for (at::ScalarType dtype : {at::kFloat, at::kBFloat16})
        calls::Started(group, {what, dtype, 500009, 0, ++seed, seed % 2 == 0, false, hosts()}).finish();
    // In windows, of sizes on both sides of each limit.
    for (What what : kAll)
      for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kByte})
        for (int64_t elements : {0, 1, 4095, 4096, 20001, 70001, 300007}) {
          const int root = static_cast<int>(++seed) % group.world();
          calls::Started(group, {what, dtype, elements, root, seed, seed % 2 == 0, true, hosts()}).finish();
        }
  });
}

// Random operations, several under way at once, waited for in their order.
TEST_P(Operations, RandomSequences) {
  for (unsigned seed = 0; seed < 3; ++seed)
    run([seed](Group& group) {
      std::mt19937 random(seed);
      const auto below = [&random](unsigned n) { return random() % n; };
      std::vector<calls::Started> running;
      for (int number = 0; number < 60; ++number) {
        Call call;
        call.what = kAll[below(5)];
        call.dtype = calls::kTypes[below(7)];
        call.elements = below(4) == 0 ? below(200000) : below(300);
        call.root = static_cast<int>(below(static_cast<unsigned>(group.world())));
        call.seed = number + 1000 * seed;
        call.in_place = below(2) == 0;
        call.in_window = below(3) == 0;
        call.hosts = hosts();
        running.emplace_back(group, call);
        if (below(3) == 0 || running.size() > 6) {
          for (calls::Started& one : running) one.finish();
          running.clear();
        }
      }
      for (calls::Started& one : running) one.finish();
    });
}

TEST_P(Operations, AllReduceIsReduceScatterBitForBit) {
  run([](Group& group) {
    const int64_t piece = 30011, all = piece * group.world();
    for (at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const Call call{What::kSum, dtype, all, 0, 77, false, false, hosts()};
      at::Tensor input = calls::input_of(call, group.rank(), all), sum = input.clone();
      at::Tensor part = at::zeros({piece}, sum.options());
      group.all_reduce(sum, Reduction::kSum, "sum");
      group.reduce_scatter(part, input, "part");
      EXPECT_TRUE(at::equal(part, sum.narrow(0, piece * group.rank(), piece)));
    }
  });
}

// The sum before it is rounded.
TEST_P(Operations, ReduceScatterOf16BitsInto32) {
  run([](Group& group) {
    for (int64_t piece : {3, 5000, 300000}) {
      const Call call{What::kReduceScatter, at::kBFloat16, piece, 0, 5, false, false, hosts()};
      at::Tensor input = calls::input_of(call, group.rank(), piece * group.world()), wide = at::zeros({piece}),
                 narrow = wide.to(at::kBFloat16);
      group.reduce_scatter(wide, input, "wide");
      group.reduce_scatter(narrow, input, "narrow");
      EXPECT_TRUE(at::equal(wide.to(at::kBFloat16), narrow));
      if (group.world() > 2) { EXPECT_FALSE(at::equal(wide, narrow.to(at::kFloat))); }
    }
  });
}

TEST_P(Operations, MaximumKeepsNan) {
  run([](Group& group) {
    at::Tensor values = at::full({3}, static_cast<double>(group.rank()), at::kFloat);
    if (group.rank() == 0) values[1] = std::numeric_limits<float>::quiet_NaN();
    group.all_reduce(values, Reduction::kMax, "max");
    EXPECT_EQ(values[0].item<float>(), static_cast<float>(group.world() - 1));
    EXPECT_TRUE(std::isnan(values[1].item<float>()));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Operations, testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(0, 1)));
INSTANTIATE_TEST_SUITE_P(Hosts, Operations, testing::Values(std::tuple(4, 2), std::tuple(6, 3)));

// One rank's tensor lies in a window, another's does not.
TEST_P(Operations, WindowsOnSomeRanks) {
  run([](Group& group) {
    for (int64_t elements : {5, 6000, 200000}) {
      at::Tensor in_window = group.window(elements, at::kFloat), ordinary = at::zeros({elements});
      at::Tensor tensor = group.rank() % 2 ? in_window : ordinary;
      tensor.fill_(group.rank() + 1);
      group.all_reduce(tensor, Reduction::kSum, "some");
      EXPECT_TRUE(at::equal(tensor, at::full({elements}, group.world() * (group.world() + 1) / 2, at::kFloat)));
    }
  });
}

TEST_P(Operations, PeersSeeEachOthersWindowsAndOneCommonMemory) {
  run([](Group& group) {
    at::Tensor window = group.window(1000, at::kFloat);
    window.fill_(group.rank());
    group.barrier("filled", std::chrono::seconds{20});
    const std::vector<at::Tensor> peers = group.peers(window.narrow(0, 10, 20));
    const bool shares = (group.describe().find("shared memory of") == 0 && hosts() == 1) || group.world() == 1;
    ASSERT_EQ(peers.size(), shares ? static_cast<size_t>(group.world()) : 0u) << group.describe();
    for (size_t r = 0; r < peers.size(); ++r) EXPECT_TRUE(at::equal(peers[r], at::full({20}, static_cast<int>(r), at::kFloat)));

    std::optional<at::Tensor> common = group.common(group.world() * 5000, at::kFloat);
    ASSERT_EQ(common.has_value(), shares);
    if (!common) return;
    EXPECT_EQ(common->sum().item<float>(), 0);
    group.barrier("seen", std::chrono::seconds{20});
    at::Tensor own = common->narrow(0, group.rank() * 5000, 5000);
    own.fill_(group.rank() + 1);
    group.all_gather(*common, own, "nothing to copy");
    for (int r = 0; r < group.world(); ++r) EXPECT_EQ((*common)[r * 5000 + 4999].item<float>(), r + 1);
    if (group.world() > 1) group.barrier("read", std::chrono::seconds{20});
    if (group.rank() == 0) common->fill_(7);
    group.broadcast(*common, 0, "nothing to copy");
    EXPECT_EQ((*common)[4].item<float>(), 7);
  });
}

TEST(Operations, WrongCallsAreRefusedAndSayWhat) {
  ranks::run(1, [](Group& group) {
    const auto says = [](const std::function<void()>& call, const std::string& text) {
      try {
        call();
        ADD_FAILURE() << "not refused: " << text;
      } catch (const std::exception& failure) { EXPECT_NE(std::string(failure.what()).find(text), std::string::npos) << failure.what(); }
    };
    const at::Tensor four = at::zeros({4}), three = at::zeros({3});
    says([&] { group.reduce_scatter(three, four, "grads"); }, "reduce_scatter 1 (grads): input has 4 elements, not 1 pieces of 3");
    says([&] { group.all_gather(four, three, "params"); }, "output has 4 elements, not 1 pieces of 3");
    says([&] { group.broadcast(four, 1, "x"); }, "root 1 is out of range for 1 ranks");
    says([&] { group.all_reduce(at::zeros({4, 4}).t(), Reduction::kSum, "x"); }, "not contiguous");
    says([&] { group.all_reduce(at::zeros({4}, at::kBool), Reduction::kSum, "x"); }, "tensors of type Bool are not supported");
    says([&] { group.all_gather(four, at::zeros({4}, at::kDouble), "x"); }, "input is Double, output Float");
    says([&] { group.all_reduce(at::Tensor(), Reduction::kSum, "x"); }, "not defined");
  });
}

}  // namespace
