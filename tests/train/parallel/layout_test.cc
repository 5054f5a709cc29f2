// Where parameters lie: every element has one place and one owner, for any sizes and any number of ranks.
#include "engine/parallel/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace phalanx;

namespace {

using namespace engine::parallel;

std::vector<ParamShape> random_model(std::mt19937& random) {
  std::vector<ParamShape> params;
  const int parts = 1 + static_cast<int>(random() % 6);
  for (int part = 0; part < parts; ++part)
    for (unsigned i = 0; i < 1 + random() % 4; ++i) {
      const auto numel = static_cast<int64_t>(1 + random() % 300);
      params.push_back(
          {"p" + std::to_string(params.size()), {numel}, numel, static_cast<int>(random() % 2), "part" + std::to_string(part)});
    }
  return params;
}

// Each parameter's elements are seen once over all ranks' slices; slices are equal; slots are aligned and do not overlap.
void check(const std::vector<ParamShape>& params, const std::vector<Unit>& units, int world) {
  std::vector<std::vector<int>> seen(params.size());
  for (size_t p = 0; p < params.size(); ++p) seen[p].resize(static_cast<size_t>(params[p].numel));
  for (const Unit& unit : units) {
    ASSERT_EQ(unit.elements % (kAlign * world), 0);
    int64_t end = 0;
    for (const Slot& slot : unit.slots) {
      EXPECT_EQ(slot.offset % kAlign, 0);
      EXPECT_GE(slot.offset, end);
      end = slot.offset + slot.numel;
    }
    EXPECT_LE(end, unit.elements);
    for (int rank = 0; rank < world; ++rank) {
      const Slice slice = slice_of(unit, rank, world);
      EXPECT_EQ(slice.begin, rank * (unit.elements / world));
      EXPECT_EQ(slice.numel, unit.elements / world);
      std::vector<int> group_at(static_cast<size_t>(slice.numel), -1);
      for (const auto& run : runs_in(unit, slice.begin, slice.end()))
        for (int64_t i = run.begin; i < run.end; ++i) {
          EXPECT_EQ(group_at.at(static_cast<size_t>(i)), -1);
          group_at.at(static_cast<size_t>(i)) = run.group;
        }
      for (const Overlap& part : overlaps(unit, slice.begin, slice.end()))
        for (int64_t i = 0; i < part.numel; ++i) {
          ++seen[part.param].at(static_cast<size_t>(part.first + i));
          EXPECT_EQ(group_at.at(static_cast<size_t>(part.offset + i)), params[part.param].group);
        }
    }
  }
  for (const auto& elements : seen)
    for (int times : elements) EXPECT_EQ(times, 1);
}

TEST(Layout, EveryElementHasOnePlaceAndOneOwner) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto params = random_model(random);
    const int world = 1 + static_cast<int>(random() % 7);
    const LayoutSizes sizes{static_cast<int64_t>(1 + random() % 200), static_cast<int64_t>(200 + random() % 800),
                            static_cast<int64_t>(random() % 200)};
    check(params, plan_buckets(params, sizes, world), world);
    for (bool sharded : {true, false}) check(params, plan_parts(params, sizes, world, sharded), world);
  }
}

TEST(Layout, BucketsGoBackwardsAndTheFirstIsSmall) {
  std::vector<ParamShape> params;
  for (int i = 0; i < 6; ++i) params.push_back({"p" + std::to_string(i), {100}, 100, 0, "a"});
  const auto units = plan_buckets(params, {100, 350, 0}, 2);
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].slots.size(), 1u);
  EXPECT_EQ(units[0].slots[0].param, 5u);
  EXPECT_EQ(units[1].slots.size(), 3u);
  EXPECT_EQ(units[2].slots.back().param, 0u);
}

TEST(Layout, PartsAreUnitsAndSmallParametersStayWhole) {
  const std::vector<ParamShape> params = {{"embed", {500}, 500, 0, "embed"},
                                          {"a.w", {300}, 300, 0, "a"},
                                          {"a.b", {10}, 10, 1, "a"},
                                          {"b.w", {300}, 300, 0, "b"},
                                          {"b.v", {200}, 200, 0, "b"}};
  const auto units = plan_parts(params, {1000, 1000, 100}, 4, /*sharded=*/true);
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[0].name, "b");
  EXPECT_EQ(units[0].slots.size(), 2u);
  EXPECT_EQ(units[1].name, "a");
  EXPECT_TRUE(units[1].sharded);
  EXPECT_FALSE(units[3].sharded);
  EXPECT_EQ(units[3].slots[0].param, 2u);
  for (const Unit& unit : plan_parts(params, {1000, 1000, 100}, 4, /*sharded=*/false)) EXPECT_FALSE(unit.sharded) << unit.name;
}

}  // namespace
