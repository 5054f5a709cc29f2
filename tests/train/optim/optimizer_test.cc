// The optimizers against torch.optim, and their promise that an element's result does not depend on where it lies.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "engine/optim/adamw.h"
#include "engine/optim/lion.h"
#include "engine/optim/norm.h"
#include "engine/optim/row_kernels.h"
#include "engine/optim/sgd.h"
#include "oracle.h"

using namespace phalanx;

namespace {

using namespace engine::optim;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Row>, std::vector<Group>)>;

const std::vector<Group> kGroups = {{"first", 1, 0.1}, {"second", 0.5, 0}};

std::unique_ptr<Optimizer> adamw(std::vector<Row> rows, std::vector<Group> groups) {
  return std::make_unique<AdamW>(std::move(rows), std::move(groups), AdamWOptions{0.9, 0.95, 1e-8});
}
std::unique_ptr<Optimizer> lion(std::vector<Row> rows, std::vector<Group> groups) {
  return std::make_unique<Lion>(std::move(rows), std::move(groups), LionOptions{});
}
Make sgd(SgdOptions options) {
  return [options](std::vector<Row> rows, std::vector<Group> groups) {
    return std::make_unique<Sgd>(std::move(rows), std::move(groups), options);
  };
}

at::Tensor floats(const base::Json& list) { return at::tensor(list.get<std::vector<float>>()); }

// Largest difference in units in the last place of the larger one, not counting below `floor`.
double ulps(const at::Tensor& a, const at::Tensor& b, float floor) {
  double most = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data_ptr<float>()[i], y = b.data_ptr<float>()[i];
    const float size = std::max({std::abs(x), std::abs(y), floor});
    most = std::max(most, std::abs(static_cast<double>(x) - y) / (static_cast<double>(size) * 0x1p-23));
  }
  return most;
}

class AgainstTorch : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(AgainstTorch, TwelveSteps) {
  const base::Json* oracle = optim_oracle();
  if (!oracle) GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  const auto& [name, plain] = GetParam();
  const base::Json& truth = (*oracle)[name];
  const Make make = name == "adamw"          ? Make(adamw)
                    : name == "sgd"          ? sgd({})
                    : name == "sgd_momentum" ? sgd({0.9, 0.3, false})
                                             : sgd({0.8, 0, true});
  at::Tensor params = floats(truth["start"]), grads = at::empty_like(params);
  const int64_t half = params.numel() / 2;
  std::unique_ptr<Optimizer> optimizer = make({{params, grads, {}, {{0, half, 0}, {half, 2 * half, 1}}}}, kGroups);
  optimizer->plain = plain;
  for (const base::Json& one : truth["grads"]) {
    grads.copy_(floats(one) * 4);
    optimizer->step(0.01, 0.25);
  }
  // (torch from 2.0 on moves exp_avg by lerp, which rounds otherwise than 1.13's mul and add.)
  // Twelve steps of at most one rounding of difference each, made where the numbers were larger than they end (gradients reach 30).
  EXPECT_LE(ulps(params, floats(truth["end"]), 0.5f), plain ? 4 : 12);
  size_t found = 0;
  for (const NamedState& state : optimizer->states()) {
    ASSERT_TRUE(truth["states"].contains(state.name)) << state.name;
    EXPECT_LE(ulps(state.rows[0], floats(truth["states"][state.name]), 1), plain ? 4 : 12) << state.name;
    ++found;
  }
  EXPECT_EQ(found, truth["states"].size());
}
INSTANTIATE_TEST_SUITE_P(Optimizers, AgainstTorch,
                         testing::Combine(testing::Values("adamw", "sgd", "sgd_momentum", "sgd_nesterov"), testing::Bool()));

// One flat row, and the same elements cut into odd pieces at odd addresses, give the same bits.
TEST(Optimizers, AnElementsResultDoesNotDependOnItsPlace) {
  for (const Make& make : {Make(adamw), sgd({}), sgd({0.9, 0.3, false}), sgd({0.8, 0, true}), Make(lion)}) {
    const int64_t n = 200'003;
    at::Tensor start = at::randn({n}), grads = at::randn({n}) * 1e-3;
    at::Tensor whole = start.clone(), short_of_whole = at::empty({n}, at::kBFloat16);
    at::set_num_threads(1);
    auto one = make({{whole, grads, short_of_whole, {{0, n, 0}}}}, kGroups);
    for (int i = 0; i < 3; ++i) one->step(1e-2, 0.7);

    at::set_num_threads(2);
    std::vector<Row> rows;
    std::vector<int64_t> cuts = {0, 1, 2, 7, 24, 64, 65, 1000, 4099, 77'777, n};
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      const int64_t length = cuts[c + 1] - cuts[c];
      at::Tensor part = at::empty({length + 1}).narrow(0, 1, length);
      part.copy_(start.narrow(0, cuts[c], length));
      rows.push_back({part, grads.narrow(0, cuts[c], length).clone(), {}, {{0, length, 0}}});
    }
    auto many = make(rows, kGroups);
    for (int i = 0; i < 3; ++i) {
      many->begin_step(1e-2, 0.7);
      for (size_t row = rows.size(); row-- > 0;) many->step_row(row);
    }
    at::set_num_threads(1);
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      EXPECT_TRUE(rows[c].params.equal(whole.narrow(0, cuts[c], cuts[c + 1] - cuts[c]))) << one->name() << " piece " << c;
      for (size_t s = 0; s < one->states().size(); ++s)
        EXPECT_TRUE(many->states()[s].rows[c].equal(one->states()[s].rows[0].narrow(0, cuts[c], cuts[c + 1] - cuts[c])));
    }
    EXPECT_TRUE(short_of_whole.equal(whole.to(at::kBFloat16))) << one->name();
  }
}

TEST(Optimizers, ShortGradientsAndComputeCopies) {
  for (at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    at::Tensor start = at::randn({10'001}), grads = at::randn({10'001}).to(type), copy = at::empty({10'001}, type);
    at::Tensor params = start.clone(), wide = start.clone();
    auto narrow = adamw({{params, grads, copy, {{0, 10'001, 0}}}}, kGroups);
    auto full = adamw({{wide, grads.to(at::kFloat), {}, {{0, 10'001, 0}}}}, kGroups);
    narrow->step(1e-2);
    full->step(1e-2);
    EXPECT_TRUE(params.equal(wide));
    EXPECT_TRUE(copy.equal(wide.to(type)));
  }
}

TEST(Optimizers, WhatLiesInNoRunStaysAsItIs) {
  at::Tensor start = at::randn({100}), params = start.clone(), grads = at::randn({100});
  auto optimizer = adamw({{params, grads, {}, {{10, 20, 0}, {30, 40, 1}}}}, kGroups);
  optimizer->step(1e-2);
  for (int64_t i = 0; i < 100; ++i) {
    const bool in_a_run = (i >= 10 && i < 20) || (i >= 30 && i < 40);
    EXPECT_EQ(params[i].item<float>() != start[i].item<float>(), in_a_run) << i;
  }
}

TEST(Optimizers, LionMovesBySigns) {
  at::Tensor params = at::tensor({1.0f, 1.0f, 1.0f}), grads = at::tensor({0.5f, -3.0f, 0.0f});
  Lion optimizer({{params, grads, {}, {{0, 3, 0}}}}, {{"all", 1, 0.5}}, {0.9, 0.99});
  optimizer.step(0.1);
  EXPECT_TRUE(params.allclose(at::tensor({0.85f, 1.05f, 0.95f})));
  EXPECT_TRUE(optimizer.states()[0].rows[0].allclose(at::tensor({0.005f, -0.03f, 0.0f})));
  grads.copy_(at::tensor({-0.01f, 3.0f, 0.0f}));  // the momentum outweighs the first, not the second
  optimizer.step(0.1);
  EXPECT_TRUE(params.allclose(at::tensor({0.85f * 0.95f - 0.1f, 1.05f * 0.95f - 0.1f, 0.95f * 0.95f})));
}

TEST(Rounding, ShortTypesAreTorchs) {
  const base::Json* oracle = optim_oracle();
  if (!oracle) GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  const base::Json& truth = (*oracle)["rounding"];
  std::vector<float> values;
  for (int32_t bits : truth["bits"].get<std::vector<int32_t>>()) values.push_back(std::bit_cast<float>(bits));
  const auto n = static_cast<int64_t>(values.size());
  std::vector<uint16_t> bf16(values.size()), fp16(values.size());
  round_bf16(values.data(), bf16.data(), n);
  round_fp16(values.data(), fp16.data(), n);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_EQ(bf16[i] & 0x7fff, 0x7fc0);
      EXPECT_EQ(fp16[i] & 0x7fff, 0x7e00);
      continue;
    }
    EXPECT_EQ(bf16[i], static_cast<uint16_t>(truth["bf16"][i].get<int>())) << values[i];
    EXPECT_EQ(fp16[i], static_cast<uint16_t>(truth["fp16"][i].get<int>())) << values[i];
  }
  std::vector<uint16_t> halves;
  for (int i = -(1 << 15); i < 1 << 15; ++i) halves.push_back(static_cast<uint16_t>(i));
  std::vector<float> wide(halves.size());
  widen_fp16(halves.data(), wide.data(), static_cast<int64_t>(halves.size()));
  for (size_t i = 0; i < halves.size(); ++i) {
    const float expected = std::bit_cast<float>(truth["halves"][i].get<int32_t>());
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(wide[i]) : std::bit_cast<uint32_t>(wide[i]) == std::bit_cast<uint32_t>(expected)) << i;
  }
}

TEST(Norm, SumsSquaresInDoubleWhateverTheThreads) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    at::Tensor row = at::randn({300'007}).to(type), wide = row.to(at::kDouble);
    at::set_num_threads(1);
    const double sum = sum_of_squares({row}), truth = wide.mul(wide).sum().item<double>();
    EXPECT_NEAR(sum, truth, 1e-12 * truth);
    at::set_num_threads(2);
    EXPECT_EQ(sum_of_squares({row}), sum);
    at::set_num_threads(1);
  }
  at::Tensor large = at::full({3}, 3e38f);
  EXPECT_TRUE(std::isfinite(sum_of_squares({large})));
  large[1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(sum_of_squares({large})));
  EXPECT_EQ(sum_of_squares({at::empty({0})}), 0);
  EXPECT_EQ(clip_scale(5, 0), 1);
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_scale(2, 1), 1 / (2 + 1e-6));
}

}  // namespace
