// Data parallel: the same numbers as one rank on the whole batch.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/parallel/ddp.h"
#include "ranks.h"

namespace {

using engine::comm::Group;
using engine::parallel::Bucket;
using engine::parallel::BucketSizes;
using engine::parallel::Ddp;
using engine::parallel::NamedParam;

at::Tensor leaf(std::vector<int64_t> shape, double fill) { return at::zeros(shape).fill_(fill).requires_grad_(true); }

TEST(Flat, BucketsKeepValuesGradientsAndAlignment) {
  at::Tensor a = leaf({3, 5}, 1), b = leaf({7}, 2), c = leaf({4, 4}, 3), d = leaf({2}, 4);
  std::vector<Bucket> buckets =
      engine::parallel::flatten({{"a", a, true}, {"b", b, false}, {"c", c, true}, {"d", d, false}}, BucketSizes{64, 64});
  ASSERT_EQ(buckets.size(), 4u);  // c, a: one each (64 bytes are 16 floats); then b, d without decay
  EXPECT_EQ(buckets[0].slots[0].name, "c");
  EXPECT_EQ(buckets[1].slots[0].name, "a");
  EXPECT_TRUE(buckets[1].decay);
  EXPECT_FALSE(buckets[2].decay);
  for (Bucket& bucket : buckets)
    for (auto& slot : bucket.slots) {
      EXPECT_EQ(slot.offset * 4 % 64, 0);
      EXPECT_TRUE(slot.param.is_alias_of(bucket.params));
      EXPECT_TRUE(slot.param.grad().is_alias_of(bucket.grads));
    }
  EXPECT_EQ(a.sum().item<float>(), 15);
  (a.sum() * 2 + d.sum()).backward();
  EXPECT_TRUE(a.grad().is_alias_of(buckets[1].grads)) << "backward must add into the view";
  EXPECT_EQ(buckets[1].grads.sum().item<float>(), 30);
  const double norm = engine::parallel::clip_grads(buckets, 1.0);
  EXPECT_NEAR(norm, std::sqrt(15 * 4 + 2), 1e-5);
  EXPECT_NEAR(engine::parallel::clip_grads(buckets, 0), 1.0, 1e-5);
}

// Each rank's loss is rank-dependent; the gradient must be the mean, also of parameters some ranks do not use.
void mean_gradients(int world, BucketSizes sizes) {
  ranks::run(world, [&](Group& group) {
    at::Tensor used = leaf({33}, 1), sometimes = leaf({5}, 1), never = leaf({2}, 1);
    auto buckets = engine::parallel::flatten({{"never", never}, {"used", used}, {"sometimes", sometimes}}, sizes);
    Ddp ddp(buckets, group);
    ASSERT_TRUE(ddp.start_equal().ok());
    for (int round = 0; round < 3; ++round) {
      engine::parallel::zero_grads(buckets);
      at::Tensor loss = used.sum() * (group.rank() + 1);
      if (group.rank() % 2 == 0) loss = loss + sometimes.sum();
      ddp.backward(loss * 0.5, false);
      ddp.backward(used.sum() * (group.rank() + 1) * 0.5 + (group.rank() % 2 == 0 ? sometimes.sum() * 0.5 : used.sum() * 0), true);
      EXPECT_NEAR(used.grad()[32].item<double>(), (world + 1) / 2.0, 1e-6);
      EXPECT_NEAR(sometimes.grad()[0].item<double>(), static_cast<double>((world + 1) / 2) / world, 1e-6);
      EXPECT_EQ(never.grad()[1].item<double>(), 0);
    }
  });
}

TEST(Ddp, GradientsAreTheMean) {
  for (int world : {1, 2, 3}) {
    mean_gradients(world, {});
    mean_gradients(world, {4, 4});  // a bucket for each parameter
  }
}

TEST(Ddp, StartsWithRankZerosValues) {
  ranks::run(2, [](Group& group) {
    at::Tensor p = leaf({3}, group.rank() + 5);
    auto buckets = engine::parallel::flatten({{"p", p}});
    Ddp ddp(buckets, group);
    ASSERT_TRUE(ddp.start_equal().ok());
    EXPECT_EQ(p.sum().item<float>(), 15);
  });
}

TEST(Ddp, DifferentModelsAreRefusedOnEveryRank) {
  ranks::run(3, [](Group& group) {
    at::Tensor p = leaf({group.rank() == 2 ? 4 : 3}, 0);
    auto buckets = engine::parallel::flatten({{"p", p}});
    Ddp ddp(buckets, group);
    base::Status status = ddp.start_equal();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().render().find("rank 2 differs from rank 0"), std::string::npos) << status.error().render();
  });
}

}  // namespace
