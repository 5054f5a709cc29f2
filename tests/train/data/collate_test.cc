// Items to batches, sets in memory, and how a batch is shared.
#include "engine/data/collate.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "engine/data/batch_share.h"
#include "engine/data/sets.h"
#include "sets.h"

using namespace phalanx;

namespace {

using namespace engine::data;

std::vector<Sample> three_items() {
  std::vector<Sample> items;
  for (int64_t index : {1, 4, 2}) {
    ItemRandom random(0, 0, index);
    items.push_back(sets::ragged_item(index, random));
  }
  return items;
}

TEST(Collate, PadsToTheLongest) {
  const MicroBatch batch = collate(three_items(), {.tokens = 9, .multiple = 1}).value();
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(batch.at("tokens").sizes(), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(batch.at("noise").sizes(), std::vector<int64_t>{3});
  EXPECT_EQ(batch.at("tokens")[0][1].item<int64_t>(), 1001);
  EXPECT_EQ(batch.at("tokens")[0][2].item<int64_t>(), 9);
  EXPECT_EQ(batch.at("targets")[0][2].item<int64_t>(), kNoTarget);
  EXPECT_EQ(batch.lengths[1].item<int64_t>(), 5);
  EXPECT_EQ(batch.targets, (2 - 1) + (5 - 1) + (3 - 2)) << "index % 3 of each item's targets are masked";
  EXPECT_EQ(collate(three_items(), {.tokens = 0, .multiple = 8})->at("tokens").size(1), 8);
  EXPECT_THROW(batch.at("other"), std::out_of_range);
}

TEST(Collate, EmptyRowsGetALengthOfOne) {
  const auto whole = at::TensorOptions().dtype(at::kLong);
  const std::vector<Sample> items(2, Sample{{"tokens", at::empty({0}, whole)}, {"targets", at::empty({0}, whole)}});
  const MicroBatch batch = collate(items, {}).value();
  EXPECT_EQ(batch.at("targets").sizes(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(batch.at("targets")[1][0].item<int64_t>(), kNoTarget);
  EXPECT_EQ(batch.targets, 0);
}

TEST(Collate, StacksImagesAndRefusesOtherShapes) {
  auto images = at::arange(2 * 3 * 4, at::TensorOptions().dtype(at::kFloat)).view({2, 3, 4});
  auto labels = at::arange(2, at::TensorOptions().dtype(at::kLong));
  auto set = TensorDataset::create("digits", {{"image", images}, {"label", labels}}).value();
  ItemRandom random(0, 0, 0);
  std::vector<Sample> items{set->get(1, random).value(), set->get(0, random).value()};
  const MicroBatch batch = collate(items, {}).value();
  EXPECT_TRUE(batch.at("image").equal(images.flip(0)));
  EXPECT_TRUE(batch.at("label").equal(labels.flip(0)));
  EXPECT_EQ(batch.targets, 2);
  EXPECT_FALSE(batch.lengths.defined());
  items[1][0].value = at::ones({3, 5});
  EXPECT_NE(collate(items, {}).error().render().find("\"image\" is Float [3, 5] in item 1 and Float [3, 4] in item 0"), std::string::npos);
  items[1].pop_back();
  EXPECT_NE(collate(items, {}).error().render().find("item 1 of the batch has 1 fields, item 0 has 2"), std::string::npos);
}

TEST(TensorDataset, RefusesWhatHasNoEqualRows) {
  const auto three = at::ones({3}), four = at::ones({4, 2});
  EXPECT_FALSE(TensorDataset::create("x", {}).ok());
  EXPECT_FALSE(TensorDataset::create("x", {{"a", at::ones({})}}).ok());
  EXPECT_FALSE(TensorDataset::create("x", {{"a", three}, {"a", three}}).ok());
  EXPECT_NE(TensorDataset::create("x", {{"a", three}, {"b", four}}).error().render().find("\"b\" has 4 rows, but \"a\" has 3"),
            std::string::npos);
}

TEST(ConcatDataset, CountsThroughItsParts) {
  auto part = [](float first, int64_t rows) -> std::shared_ptr<const Dataset> {
    return TensorDataset::create("p", {{"x", at::full({rows, 2}, first)}}).value();
  };
  const ConcatDataset set({part(1, 2), part(2, 0), part(3, 3)});
  ASSERT_EQ(set.size(), 5);
  std::string values;
  for (int64_t i = 0; i < 5; ++i) {
    ItemRandom random(0, 0, i);
    values += std::to_string(set.get(i, random).value()[0].value[1].item<int>());
  }
  EXPECT_EQ(values, "11333");
  EXPECT_EQ(set.place(4), "p item 2");
  EXPECT_NE(set.fingerprint(), ConcatDataset({part(1, 2), part(3, 3)}).fingerprint());
}

TEST(BatchShare, DividesOrNamesTheNearest) {
  const BatchShare share = share_batch(24, 2, 3).value();
  EXPECT_EQ(share.rows, 4);
  EXPECT_EQ(share.per_rank(), 12);
  EXPECT_EQ(describe(share, 256), "batch: 4 sequences × 2 ranks × 3 passes = 24 sequences per step (6144 tokens)");
  EXPECT_EQ(describe(share_batch(1, 1, 1).value(), 0), "batch: 1 sequence × 1 rank × 1 pass = 1 sequence per step");
  const std::string error = share_batch(8, 3, 1).error().render();
  EXPECT_NE(error.find("train.batch 8 cannot be divided equally"), std::string::npos);
  EXPECT_NE(error.find("hint: train.batch=9 or train.batch=6"), std::string::npos) << error;
  EXPECT_NE(share_batch(5, 4, 2).error().render().find("hint: train.batch=8\n"), std::string::npos);
}

}  // namespace
