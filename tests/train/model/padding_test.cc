// How sequences of different lengths are laid out for an attention that takes one length.
#include "engine/model/padding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace phalanx::engine::model;

namespace {

std::vector<int64_t> numbers(const at::Tensor& tensor) { return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()}; }

TEST(Padding, SequencesOfOneLengthStayWhereTheyAre) {
  const Padding padding = padding_of({0, 5, 10, 15}, at::kCPU);
  ASSERT_EQ(padding.groups.size(), 1u);
  EXPECT_EQ(padding.groups[0].sequences, 3);
  EXPECT_EQ(padding.longest(), 5);
  EXPECT_FALSE(padding.groups[0].row_of_place.defined());
  EXPECT_FALSE(padding.place_of_row.defined());
}

// Packed rows: one long example among a hundred short ones, and lengths at random.
TEST(Padding, EveryRowHasItsPlaceAndLessThanTwiceAsManyAreMade) {
  std::mt19937 dice(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> starts{0};
    const int count = 2 + static_cast<int>(dice() % 100);
    for (int i = 0; i < count; ++i)
      starts.push_back(starts.back() + (round == 0 ? (i == 7 ? 4000 : 40) : 1 + static_cast<int64_t>(dice() % (1u << (dice() % 9)))));
    const Padding padding = padding_of(starts, at::kCPU);
    if (!padding.place_of_row.defined()) continue;
    const std::vector<int64_t> place_of_row = numbers(padding.place_of_row);
    ASSERT_EQ(place_of_row.size(), static_cast<size_t>(starts.back()));
    std::vector<int64_t> row_of_place;
    int64_t longest_before = starts.back();
    for (const Padding::Group& group : padding.groups) {
      const std::vector<int64_t> rows = numbers(group.row_of_place);
      ASSERT_EQ(static_cast<int64_t>(rows.size()), group.sequences * group.longest);
      EXPECT_LE(group.longest, longest_before);
      longest_before = group.longest;
      // A sequence is at its group's row of places, in order, and behind it come rows of its own only.
      for (int64_t s = 0; s < group.sequences; ++s) {
        const auto* places = rows.data() + s * group.longest;
        for (int64_t i = 1; i < group.longest; ++i) EXPECT_TRUE(places[i] == places[i - 1] + 1 || places[i] == places[i - 1]);
      }
      row_of_place.insert(row_of_place.end(), rows.begin(), rows.end());
    }
    EXPECT_LT(static_cast<int64_t>(row_of_place.size()), 2 * starts.back());
    for (int64_t row = 0; row < starts.back(); ++row)
      EXPECT_EQ(row_of_place[static_cast<size_t>(place_of_row[static_cast<size_t>(row)])], row);
  }
}

// [sequences, time, width] each.
at::Tensor causal(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t time = q.size(1);
  const at::Tensor hidden = at::full({time, time}, -1e9).triu(1);
  return at::matmul(at::softmax(at::matmul(q, k.transpose(1, 2)) + hidden, -1), v);
}

TEST(Padding, AttentionAndItsGradientsAreThoseOfEachSequenceAlone) {
  for (const std::vector<int64_t>& starts : {std::vector<int64_t>{0, 3, 20, 22, 29, 30}, {0, 7, 14}, {0, 1, 2, 40}}) {
    const Padding padding = padding_of(starts, at::kCPU);
    std::vector<at::Tensor> given, mine, truth;
    for (int i = 0; i < 3; ++i) {
      given.push_back(at::randn({starts.back(), 8}));
      mine.push_back(given.back().clone().requires_grad_());
      truth.push_back(given.back().clone().requires_grad_());
    }
    const std::vector<at::Tensor> q = padded(padding, mine[0]), k = padded(padding, mine[1]), v = padded(padding, mine[2]);
    std::vector<at::Tensor> groups, alone;
    for (size_t g = 0; g < padding.groups.size(); ++g) {
      const auto apart = [&](const at::Tensor& x) { return x.view({padding.groups[g].sequences, padding.groups[g].longest, 8}); };
      groups.push_back(causal(apart(q[g]), apart(k[g]), apart(v[g])).flatten(0, 1));
    }
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      const auto sequence = [&](const at::Tensor& x) { return x.slice(0, starts[i], starts[i + 1]).unsqueeze(0); };
      alone.push_back(causal(sequence(truth[0]), sequence(truth[1]), sequence(truth[2])).squeeze(0));
    }
    const at::Tensor seen = unpadded(padding, groups), expected = at::cat(alone), weights = at::randn(expected.sizes());
    EXPECT_TRUE(seen.allclose(expected, 1e-5, 1e-6));
    (seen * weights).sum().backward();
    (expected * weights).sum().backward();
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(mine[i].grad().allclose(truth[i].grad(), 1e-4, 1e-5)) << i;
  }
}

}  // namespace
