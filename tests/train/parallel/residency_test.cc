// Stage 3: parameters are there when an operation touches them, and gone when others are.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/optim/sgd.h"
#include "engine/parallel/data_parallel.h"
#include "net.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using engine::comm::Group;
using engine::parallel::DataParallel;
using engine::parallel::LiveStorage;
using engine::parallel::Options;
using engine::parallel::Stage;
using engine::parallel::Touchable;
namespace optim = engine::optim;

Options stage3(int live_units = 2, bool prefetch = true) {
  Options options;
  options.stage = Stage::kZero3;
  options.persistent_elements = 10;
  options.live_units = live_units;
  options.prefetch = prefetch;
  return options;
}

TEST(LiveStorage, ViewsOutliveTheMemory) {
  Touchable owner;
  LiveStorage storage(8, at::TensorOptions().dtype(at::kFloat), &owner);
  at::Tensor view = storage.tensor().narrow(0, 2, 4).view({2, 2}).t();
  EXPECT_EQ(LiveStorage::owner_of(view), &owner);
  EXPECT_EQ(LiveStorage::owner_of(at::zeros({2})), nullptr);
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(storage.present());
    storage.allocate();
    storage.memory().fill_(round + 1);
    EXPECT_EQ(view.sum().item<float>(), 4 * (round + 1));
    storage.release();
  }
}

size_t whole_units(torch::nn::Module& module) {
  std::set<const void*> present;
  for (const auto& item : module.named_parameters())
    if (LiveStorage::owner_of(item.value()) && item.value().storage().data_ptr().get())
      present.insert(item.value().storage().unsafeGetStorageImpl());
  return present.size();
}

TEST(ParamGather, FewUnitsAreWholeAtATime) {
  for (bool prefetch : {false, true})
    ranks::run(2, [&](Group& group) {
      net::Net model(24, 8);
      auto parallel = DataParallel::wrap(*model, group, stage3(2, prefetch)).value();
      parallel->initialise([&] { model->init(3); });
      EXPECT_EQ(whole_units(*model), 0u);
      optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
      double first = 0, last = 0;
      for (int step = 0; step < 6; ++step) {
        at::Tensor loss = model->loss(net::tokens(4, 0)) / 4.0;
        EXPECT_LE(whole_units(*model), 2u);
        EXPECT_GE(whole_units(*model), 1u);
        parallel->backward(loss);
        parallel->step(sgd, {.lr = 0.05});
        EXPECT_EQ(whole_units(*model), 0u);
        last = loss.item<double>();
        if (step == 0) first = last;
      }
      EXPECT_LT(last, first) << "it learns";
      int64_t largest = 0;
      for (const auto& unit : parallel->units()) largest = std::max(largest, unit.elements * 4);
      EXPECT_LE(parallel->memory().parameters, parallel->parameter_count() * 4 / 2 + 2 * largest + 4096);
      at::NoGradGuard no_grad;
      EXPECT_LT(model->loss(net::tokens(4, 0)).item<double>() / 4.0, last) << "evaluation gathers as well";
    });
}

TEST(ParamGather, AnOperationOnManyUnitsHasThemAll) {
  ranks::run(2, [](Group& group) {
    net::Net model(24, 5);
    auto parallel = DataParallel::wrap(*model, group, stage3()).value();
    parallel->initialise([&] {
      at::NoGradGuard no_grad;
      for (size_t i = 0; i < 5; ++i) model->layers[i]->as<engine::model::LinearImpl>()->weight.fill_(static_cast<double>(i));
    });
    std::vector<at::Tensor> weights;
    for (size_t i = 0; i < 5; ++i) weights.push_back(model->layers[i]->as<engine::model::LinearImpl>()->weight);
    at::Tensor all = at::stack(weights);
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(all[i].mean().item<double>(), static_cast<double>(i));
  });
}

TEST(ParamGather, InitialValuesAreRankZerosInEveryStage) {
  for (Stage stage : {Stage::kDdp, Stage::kZero1, Stage::kZero2, Stage::kZero3})
    ranks::run(3, [&](Group& group) {
      net::Net model, alone;
      alone->init(100);
      Options options = stage3();
      options.stage = stage;
      auto parallel = DataParallel::wrap(*model, group, options).value();
      parallel->initialise([&] { model->init(100 + static_cast<uint64_t>(group.rank())); });
      auto expected = alone->named_parameters();
      for (const auto& item : model->named_parameters())
        EXPECT_TRUE(at::clone(item.value()).equal(expected[item.key()])) << item.key() << " in " << name_of(stage);
    });
}

// What one number of ranks in one stage holds is given to another number in another stage, piece by piece.
TEST(Spans, CoverEveryElementOnceAndFitAnyOtherCut) {
  struct Cut {
    Stage stage;
    int world;
  };
  const std::vector<Cut> cuts = {{Stage::kDdp, 1},   {Stage::kDdp, 2},   {Stage::kZero1, 3},
                                 {Stage::kZero2, 2}, {Stage::kZero3, 4}, {Stage::kZero3, 2}};
  for (const Cut& from : cuts)
    for (const Cut& to : cuts) {
      std::map<std::string, std::vector<float>> saved;
      std::mutex mutex;
      ranks::run(from.world, [&](Group& group) {
        net::Net model;
        Options options = stage3();
        options.stage = from.stage;
        auto parallel = DataParallel::wrap(*model, group, options).value();
        parallel->initialise([&] { model->init(9); });
        std::lock_guard lock(mutex);
        for (const auto& span : parallel->spans(DataParallel::Cover::kOwn)) {
          auto& whole = saved[span.name];
          int64_t numel = 1;
          for (int64_t size : span.shape) numel *= size;
          whole.resize(static_cast<size_t>(numel), NAN);
          for (int64_t i = 0; i < span.data.numel(); ++i) {
            float& place = whole[static_cast<size_t>(span.begin + i)];
            EXPECT_TRUE(std::isnan(place)) << "given twice: " << span.name;
            place = span.data[i].item<float>();
          }
        }
      });
      ranks::run(to.world, [&](Group& group) {
        net::Net model, alone;
        alone->init(9);
        Options options = stage3();
        options.stage = to.stage;
        auto parallel = DataParallel::wrap(*model, group, options).value();
        for (const auto& span : parallel->spans(DataParallel::Cover::kHeld))
          for (int64_t i = 0; i < span.data.numel(); ++i) span.data[i] = saved.at(span.name)[static_cast<size_t>(span.begin + i)];
        parallel->loaded();
        auto expected = alone->named_parameters();
        for (const auto& item : model->named_parameters()) EXPECT_TRUE(at::clone(item.value()).equal(expected[item.key()])) << item.key();
      });
    }
}

}  // namespace
