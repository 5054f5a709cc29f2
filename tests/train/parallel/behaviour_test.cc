// What surrounds a step: gradients one can look at, ranks without data, unused and repeated parameters, two models, buffers, refusals.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "engine/optim/sgd.h"
#include "engine/parallel/data_parallel.h"
#include "forwarding_group.h"
#include "net.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using engine::comm::Group;
using engine::parallel::DataParallel;
using engine::parallel::Options;
using engine::parallel::Reduce;
using engine::parallel::Stage;
namespace optim = engine::optim;

constexpr Stage kStages[] = {Stage::kDdp, Stage::kZero1, Stage::kZero2, Stage::kZero3};

struct PairImpl : torch::nn::Module {
  PairImpl() {
    used = register_parameter("used", at::zeros({33}).fill_(1));
    sometimes = register_parameter("sometimes", at::zeros({5}).fill_(1));
    never = register_parameter("never", at::zeros({2}).fill_(1));
  }
  at::Tensor used, sometimes, never;
};
TORCH_MODULE(Pair);

Options small(Stage stage) {
  Options options;
  options.stage = stage;
  options.first_bucket_bytes = options.bucket_bytes = 4;
  options.persistent_elements = 4;
  return options;
}

// What a rank holds of the gradient of each parameter, after SGD with rate 1 from all ones: 1 - parameter.
double moved(const at::Tensor& parameter) { return 1 - at::clone(parameter)[0].item<double>(); }

TEST(Gradients, AreTheMeanWhateverARankUses) {
  for (Stage stage : kStages)
    for (int world : {1, 2, 3})
      ranks::run(world, [&](Group& group) {
        Pair pair;
        auto parallel = DataParallel::wrap(*pair, group, small(stage)).value();
        optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
        auto loss = [&] {
          at::Tensor value = pair->used.sum() * (group.rank() + 1);
          if (group.rank() % 2 == 0) return value + pair->sometimes.sum();
          // In stage 3 all ranks have to touch the same parameters.
          return stage == Stage::kZero3 ? value + pair->sometimes.sum() * 0 : value;
        };
        parallel->backward(loss() * 0.5, false);
        parallel->backward(loss() * 0.5, true);
        if (stage == Stage::kDdp) {
          EXPECT_NEAR(pair->used.grad()[32].item<double>(), (world + 1) / 2.0, 1e-6);
          EXPECT_EQ(pair->never.grad()[1].item<double>(), 0);
        }
        parallel->step(sgd, {.lr = 1});
        EXPECT_NEAR(moved(pair->used), (world + 1) / 2.0, 1e-6) << name_of(stage);
        EXPECT_NEAR(moved(pair->sometimes), static_cast<double>((world + 1) / 2) / world, 1e-6) << name_of(stage);
        EXPECT_EQ(moved(pair->never), 0);
      });
}

TEST(Gradients, ARankWithoutDataAddsNothing) {
  for (Stage stage : {Stage::kDdp, Stage::kZero1, Stage::kZero2})
    ranks::run(3, [&](Group& group) {
      Pair pair;
      auto parallel = DataParallel::wrap(*pair, group, small(stage)).value();
      optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
      parallel->backward(group.rank() == 1 ? at::Tensor() : pair->used.sum() * 3);
      parallel->step(sgd, {.lr = 1});
      EXPECT_NEAR(moved(pair->used), 2, 1e-6);
    });
}

TEST(Gradients, AnInfinityAnywhereSkipsTheStepEverywhere) {
  for (Stage stage : kStages)
    ranks::run(2, [&](Group& group) {
      Pair pair;
      auto parallel = DataParallel::wrap(*pair, group, small(stage)).value();
      optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
      parallel->backward(pair->used.sum() * (group.rank() == 1 ? INFINITY : 1.0));
      EXPECT_FALSE(parallel->step(sgd, {.lr = 1}).finite);
      EXPECT_EQ(moved(pair->used), 0);
      parallel->backward(pair->used.sum() * 8);
      EXPECT_NEAR(parallel->step(sgd, {.lr = 1, .loss_scale = 8}).norm, std::sqrt(33.0), 1e-5);
      EXPECT_NEAR(moved(pair->used), 1, 1e-6);
    });
}

// Of many small buckets, the reductions that overlapped the second backward. The first one learns, and starts them all behind it.
struct OverlapCount {
  size_t overlapped = 0, units = 0;
};
OverlapCount overlap_of(Group& group, Stage stage, const std::function<void()>& before_second = {}) {
  net::Net model(24, 6);
  model->init(1);
  Options options;
  options.stage = stage;
  options.first_bucket_bytes = 4;
  options.bucket_bytes = 2000;
  auto parallel = DataParallel::wrap(*model, group, options).value();
  OverlapCount found{0, parallel->units().size()};
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && before_second) before_second();
    parallel->backward(model->loss(net::tokens(2, i), true));
    found.overlapped = parallel->overlapped();
    parallel->clear();
  }
  return found;
}

// Changes what is known of the all-reduces of another group.
class Observed : public ForwardingGroup {
 protected:
  using Work = std::shared_ptr<engine::comm::Pending>;
  struct Begun final : engine::comm::Pending {
    Begun(Work of_group, bool already) : inner(std::move(of_group)), at_once(already) {}
    void wait() override { inner->wait(); }
    bool begun() const override { return at_once || inner->begun(); }
    const Work inner;
    const bool at_once;
  };

 public:
  using ForwardingGroup::ForwardingGroup;
};

// Begins every reduction at once.
class Eager final : public Observed {
 public:
  using Observed::Observed;
  std::unique_ptr<engine::comm::Pending> start_all_reduce(at::Tensor tensor, engine::comm::Reduction reduction,
                                                          std::string_view label) override {
    return std::make_unique<Begun>(ForwardingGroup::start_all_reduce(std::move(tensor), reduction, label), true);
  }
};

// A rank whose backward takes so long between its third reduction and the next one that the first has begun.
class Unhurried final : public Observed {
 public:
  using Observed::Observed;
  std::unique_ptr<engine::comm::Pending> start_all_reduce(at::Tensor tensor, engine::comm::Reduction reduction,
                                                          std::string_view label) override {
    Work work = ForwardingGroup::start_all_reduce(std::move(tensor), reduction, label);
    started_.push_back(work);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (started_.size() == 3 && !started_[0]->begun() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return std::make_unique<Begun>(work, false);
  }
  void next_backward() { started_.clear(); }

 private:
  std::vector<Work> started_;
};

TEST(Gradients, StartWhileBackwardRuns) {
  ranks::run(2, [&](Group& group) {
    Eager eager(group);
    const OverlapCount found = overlap_of(eager, Stage::kDdp);
    EXPECT_GE(found.overlapped + 1, found.units) << "all, or all but the unit of the tied embedding";
  });
}

// The ranks of one host reduce with their own cores, at wait(): what was only submitted has not begun.
TEST(Gradients, InSharedMemoryNoneOverlapsThatIsNotWaitedFor) {
  ranks::run(2, [&](Group& group) {
    for (Stage stage : {Stage::kDdp, Stage::kZero1}) EXPECT_EQ(overlap_of(group, stage).overlapped, 0u) << name_of(stage);
    const OverlapCount found = overlap_of(group, Stage::kZero2);
    EXPECT_EQ(found.overlapped + 2, found.units) << "the last two lie in the two carriers, which nothing has wanted again";
  });
}

TEST(Gradients, BetweenHostsAThreadReducesWhileBackwardRuns) {
  ranks::run_on_hosts(2, 2, [&](Group& group) {
    Unhurried unhurried(group);
    const OverlapCount found = overlap_of(unhurried, Stage::kDdp, [&] { unhurried.next_backward(); });
    EXPECT_GE(found.overlapped, 1u);
    EXPECT_LE(found.overlapped, found.units);
  });
}

TEST(Gradients, TwoModelsTrainSideBySide) {
  for (Stage stage : kStages)
    ranks::run(2, [&](Group& group) {
      Pair first, second;
      auto one = DataParallel::wrap(*first, group, small(stage)).value();
      auto two = DataParallel::wrap(*second, group, small(stage)).value();
      optim::Sgd sgd_one(one->rows(), one->groups(), {}), sgd_two(two->rows(), two->groups(), {});
      // As a GAN's generator: its loss goes through the second model, whose gradients of this are not wanted.
      one->backward((first->used * second->used).sum());
      one->step(sgd_one, {.lr = 0.5});
      two->backward(second->used.sum() * (group.rank() + 1));
      two->step(sgd_two, {.lr = 1});
      EXPECT_NEAR(moved(first->used), 0.5, 1e-6) << name_of(stage);
      EXPECT_NEAR(moved(second->used), 1.5, 1e-6) << name_of(stage);
    });
}

struct OneImpl : torch::nn::Module {
  OneImpl() { used = register_parameter("used", at::zeros({33}).fill_(1)); }
  at::Tensor used;
};
TORCH_MODULE(One);

// Backward inside of backward: what activation checkpointing does.
struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    context->saved_data["weight"] = weight;
    context->save_for_backward({x});
    return x * weight;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, const torch::autograd::variable_list& grads) {
    at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    {
      at::AutoGradMode on(true);
      (x * context->saved_data["weight"].toTensor()).backward(grads[0]);
    }
    return {x.grad(), at::Tensor()};
  }
};

TEST(Gradients, ThatComeTwiceAreLearnedOrRefused) {
  for (Stage stage : kStages)
    for (bool told : {false, true})
      ranks::run(2, [&](Group& group) {
        One one;
        Options options = small(stage);
        options.repeated_gradients = told;
        auto parallel = DataParallel::wrap(*one, group, options).value();
        optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
        auto step = [&] {
          at::Tensor input = at::zeros({33}).fill_(group.rank() + 1).requires_grad_(true);
          parallel->backward(Recompute::apply(Recompute::apply(input, one->used), one->used).sum());
          parallel->step(sgd, {.lr = 0.01});
        };
        if (stage >= Stage::kZero2 && !told) {
          try {
            step();
            ADD_FAILURE() << "not refused";
          } catch (const std::exception& failure) {
            EXPECT_NE(std::string(failure.what()).find("gradient of used was computed again"), std::string::npos) << failure.what();
          }
          return;
        }
        double expected = 1;  // d/dw (x w²) = 2 x w, the mean over x in {1, 2}
        for (int i = 0; i < 3; ++i) {
          step();
          expected -= 0.01 * 2 * 1.5 * expected;
        }
        EXPECT_NEAR(1 - moved(one->used), expected, 1e-5) << name_of(stage);
      });
}

TEST(DataParallel, BuffersAreRankZeros) {
  ranks::run(2, [&](Group& group) {
    net::Net model;
    model->init(1);
    auto parallel = DataParallel::wrap(*model, group, {}).value();
    optim::Sgd sgd(parallel->rows(), parallel->groups(), {});
    parallel->backward(model->loss(net::tokens(group.rank() + 1, 0), true));
    EXPECT_EQ(model->seen.item<double>(), group.rank() + 1);
    parallel->step(sgd, {.lr = 0.1});
    EXPECT_EQ(model->seen.item<double>(), 1);
  });
}

TEST(DataParallel, DifferentModelsAreRefusedOnEveryRank) {
  ranks::run(3, [](Group& group) {
    net::Net model(group.rank() == 2 ? 32 : 24);
    auto made = DataParallel::wrap(*model, group, {});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().render().find("rank 2 differs from rank 0"), std::string::npos) << made.error().render();
  });
}

TEST(DataParallel, OneUnfitRankIsHeardByAll) {
  ranks::run(2, [](Group& group) {
    Pair pair;
    if (group.rank() == 1) pair->used.set_data(at::zeros({33}, at::kDouble));
    auto made = DataParallel::wrap(*pair, group, {});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().render().find("cannot be trained in parallel"), std::string::npos) << made.error().render();
  });
}

TEST(DataParallel, ImpossibleOptionsAreRefusedWithAllOfThem) {
  ranks::run(1, [](Group& group) {
    auto refused = [&](const Options& options) {
      net::Net model;
      auto made = DataParallel::wrap(*model, group, options);
      EXPECT_FALSE(made.ok());
      const std::string text = made.ok() ? "" : made.error().render();
      EXPECT_NE(text.find("the configuration is: stage "), std::string::npos) << text;
      EXPECT_NE(text.find("hint: "), std::string::npos) << text;
    };
    Options options;
    options.stage = Stage::kZero3;
    options.share_parameters = true;
    refused(options);
    options = {};
    options.offload = true;
    refused(options);
    options = {};
    options.compute = at::kDouble;
    refused(options);
    options = {};
    options.bucket_bytes = 10;
    refused(options);
    options = {};
    options.stage = Stage::kZero3;
    options.live_units = 1;
    refused(options);
  });
}

}  // namespace
