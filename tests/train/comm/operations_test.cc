// Every operation × type × size × world, against what must come out, bit for bit.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "comm/calls.h"
#include "ranks.h"

namespace {

using calls::Call;
using calls::What;
using engine::comm::Group;
using engine::comm::Reduction;

constexpr What kAll[] = {What::kSum, What::kMax, What::kReduceScatter, What::kAllGather, What::kBroadcast};

class Operations : public testing::TestWithParam<int> {};

TEST_P(Operations, EveryTypeAndSize) {
  ranks::run(GetParam(), [](Group& group) {
    int64_t seed = 0;
    for (What what : kAll)
      for (at::ScalarType dtype : calls::kTypes)
        for (int64_t elements : {0, 1, 2, 3, 7, 64, 1023, 5000, 40001}) {
          const int root = static_cast<int>(++seed) % group.world();
          calls::Started(group, {what, dtype, elements, root, seed, seed % 2 == 0, false}).finish();
        }
  });
}

TEST_P(Operations, LargeOnes) {
  ranks::run(GetParam(), [](Group& group) {
    int64_t seed = 100;
    for (What what : kAll)
      for (at::ScalarType dtype : {at::kFloat, at::kBFloat16})
        calls::Started(group, {what, dtype, 1500007, 0, ++seed, seed % 2 == 0, false}).finish();
  });
}

// Random operations, several under way at once, waited for in their order.
TEST_P(Operations, RandomSequences) {
  for (unsigned seed = 0; seed < 8; ++seed)
    ranks::run(GetParam(), [seed](Group& group) {
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
  ranks::run(GetParam(), [](Group& group) {
    const int64_t piece = 30011, all = piece * group.world();
    for (at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const Call call{What::kSum, dtype, all, 0, 77, false, false};
      at::Tensor sum = calls::input_of(call, group.rank(), all), input = sum.clone();
      at::Tensor part = at::zeros({piece}, sum.options());
      group.all_reduce(sum, Reduction::kSum, "sum");
      group.reduce_scatter(part, input, "part");
      EXPECT_TRUE(at::equal(part, sum.narrow(0, piece * group.rank(), piece)));
    }
  });
}

TEST_P(Operations, MaximumKeepsNan) {
  ranks::run(GetParam(), [](Group& group) {
    at::Tensor values = at::full({3}, static_cast<double>(group.rank()), at::kFloat);
    if (group.rank() == 0) values[1] = std::numeric_limits<float>::quiet_NaN();
    group.all_reduce(values, Reduction::kMax, "max");
    EXPECT_EQ(values[0].item<float>(), static_cast<float>(group.world() - 1));
    EXPECT_TRUE(std::isnan(values[1].item<float>()));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Operations, testing::Values(1, 2, 3, 4));

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
    says([&] { group.broadcast(four, 1, "x"); }, "root 1 is not one of 1 ranks");
    says([&] { group.all_reduce(at::zeros({4, 4}).t(), Reduction::kSum, "x"); }, "not contiguous");
    says([&] { group.all_reduce(at::zeros({4}, at::kBool), Reduction::kSum, "x"); }, "tensors of Bool are not moved");
    says([&] { group.all_gather(four, at::zeros({4}, at::kDouble), "x"); }, "input is Double, output Float");
    says([&] { group.all_reduce(at::Tensor(), Reduction::kSum, "x"); }, "not defined");
  });
}

}  // namespace
