// Fine-tuning over ranks: every stage of ZeRO learns what one rank learns, and a stopped run goes on bit for bit.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/tuning/adapter.h"
#include "engine/tuning/fine_tuning.h"
#include "parallel/forwarding_group.h"
#include "ranks.h"
#include "small_decoder.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;
using Values = std::map<std::string, std::vector<float>>;

struct RunOf {
  const char* method = "full";  // or lora, freeze
  int stage = 0, world = 1;
  int64_t accumulate = 4;
  int64_t persistent = 20;  // elements: so small that nearly everything is sharded
  int layers = 2;
  int64_t stop_after = -1;  // of 5 steps; then another run continues
};

struct Outcome {
  std::vector<double> losses, norms;
  Values state, model;
  int64_t held = 0;  // bytes of parameters on rank 0
  std::string parts;
};

tune::Recipe recipe_of(const RunOf& run) {
  tune::Recipe out;
  out.per_device_train_batch_size = 1;
  out.gradient_accumulation_steps = run.accumulate;
  out.max_steps = 5;
  out.learning_rate = 0.02;
  out.weight_decay = 0.1;
  out.max_grad_norm = 0.5;
  out.zero.stage = run.stage;
  out.zero.persistent_elements = run.persistent;
  return out;
}

// Seven rows, one of which teaches nothing: steps of four batches and of three, and one rank without a batch or without targets.
std::vector<tuning::TuningRow> rows() {
  std::vector<tuning::TuningRow> out;
  for (int64_t i = 0; i < 7; ++i) {
    tuning::TuningRow row;
    for (int64_t j = 0; j < 4 + i % 3; ++j) row.ids.push_back(1 + (i * 5 + j * 3) % 12);
    row.labels = row.ids;
    row.labels[0] = model::GptImpl::kNoTarget;
    if (i == 3) std::fill(row.labels.begin(), row.labels.end(), model::GptImpl::kNoTarget);
    out.push_back(std::move(row));
  }
  return out;
}

void choose(tuning::Decoder& decoder, const RunOf& run) {
  const std::string method = run.method;
  const tune::AdapterConfig config{.rank = 4, .alpha = 8, .all_linear = true, .base_model = "here"};
  if (method == "lora") { ASSERT_TRUE(tuning::add_adapters(decoder, config, 1).ok()); }
  for (auto& item : decoder->named_parameters()) {
    const bool inside = method == "freeze" && item.key().find("layers.1.mlp") != std::string::npos;
    if (method == "full" || inside) item.value().set_requires_grad(true);
  }
}

std::vector<float> numbers(const at::Tensor& value) {
  const at::Tensor flat = value.detach().contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

void steps(tuning::FineTuning& tuned, int64_t end, bool tells, Outcome* out) {
  while (tuned.done() < end) {
    const tuning::StepReport report = tuned.step();
    if (!tells) continue;
    out->losses.push_back(report.loss);
    out->norms.push_back(report.gradient_norm);
  }
}

void rank_of(const RunOf& run, comm::Group& group, Outcome* out) {
  const auto make = [&] {
    tuning::Decoder decoder = testing_models::small_decoder(run.layers);
    choose(decoder, run);
    return decoder;
  };
  const bool first = group.rank() == 0;
  auto decoder = make();
  auto tuned = std::make_unique<tuning::FineTuning>(decoder, recipe_of(run), rows(), &group);
  if (run.stop_after >= 0) {
    steps(*tuned, run.stop_after, first, out);
    Values kept;
    for (const auto& one : tuned->state()) kept[one.name] = numbers(one.value);
    decoder = make();
    tuned = std::make_unique<tuning::FineTuning>(decoder, recipe_of(run), rows(), &group);
    std::set<std::string> known;
    for (const auto& one : tuned->state_shapes()) known.insert(one.name);
    const auto loaded = tuned->load_state([&](const tuning::NamedTensor& one) -> base::Status {
      EXPECT_EQ(known.erase(one.name), 1u) << one.name;
      at::Tensor target = one.value;
      target.copy_(at::tensor(kept.at(one.name)).view(target.sizes()));
      return base::ok();
    });
    EXPECT_TRUE(loaded.ok());
    EXPECT_EQ(known.empty(), first);
    tuned->continue_after(run.stop_after);
  }
  steps(*tuned, tuned->steps(), first, out);
  for (const auto& one : tuned->state()) out->state[one.name] = numbers(one.value);
  const auto written = tuned->with_whole_model([&] {
    for (const auto& item : decoder->named_parameters()) out->model[item.key()] = numbers(item.value());
    return base::ok();
  });
  EXPECT_TRUE(written.ok());
  if (!first) return;
  out->held = tuned->memory().parameters;
  out->parts = tuned->describe();
}

Outcome learn(const RunOf& run) {
  Outcome out;
  ranks::run(run.world, [&](comm::Group& group) { rank_of(run, group, &out); });
  return out;
}

double farthest(const Values& a, const Values& b) {
  double most = 0;
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != values.size()) return INFINITY;
    for (size_t i = 0; i < values.size(); ++i) most = std::max(most, std::abs(static_cast<double>(values[i]) - found->second[i]));
  }
  return most;
}

class Zero : public testing::TestWithParam<const char*> {};

TEST_P(Zero, EveryStageAndWorldLearnsWhatOneRankLearns) {
  const Outcome truth = learn({.method = GetParam()});
  ASSERT_EQ(truth.losses.size(), 5u);
  EXPECT_LT(truth.losses.back(), truth.losses.front());
  for (int stage : {0, 1, 2, 3})
    for (int world : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << "stage " << stage << ", ranks " << world);
      const Outcome out = learn({.method = GetParam(), .stage = stage, .world = world, .accumulate = 4 / world});
      ASSERT_EQ(out.losses.size(), 5u);
      for (size_t i = 0; i < 5; ++i) {
        EXPECT_NEAR(out.losses[i], truth.losses[i], 2e-6);
        EXPECT_NEAR(out.norms[i] / truth.norms[i], 1, 1e-5);
      }
      EXPECT_LE(farthest(out.state, truth.state), 2e-5);
      EXPECT_LE(farthest(out.model, truth.model), 2e-5);
    }
}

TEST_P(Zero, AStoppedRunGoesOnBitForBit) {
  for (int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    const RunOf run{.method = GetParam(), .stage = stage, .world = 2, .accumulate = 2};
    RunOf stopped = run;
    stopped.stop_after = 2;
    const Outcome whole = learn(run), continued = learn(stopped);
    EXPECT_EQ(whole.losses, continued.losses);
    EXPECT_EQ(whole.norms, continued.norms);
    EXPECT_EQ(farthest(whole.state, continued.state), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Zero, testing::Values("full", "lora", "freeze"));

TEST(ZeroStage3, FrozenParametersAreSharded) {
  for (const char* method : {"lora", "freeze", "full"}) {
    const Outcome out = learn({.method = method, .stage = 3, .world = 4, .accumulate = 1, .layers = 10});
    int64_t all = 0;
    for (const auto& [name, values] : out.model) all += static_cast<int64_t>(values.size() * sizeof(float));
    // A quarter, the small ones, and two or three parts of a dozen that are whole for a while.
    EXPECT_LT(static_cast<double>(out.held), 0.7 * static_cast<double>(all)) << method;
    // A unit for each layer, the embedding, and one for all small parameters.
    const std::string name = method;
    EXPECT_EQ(out.parts, name == "full"   ? "zero3 over 4 ranks, 12 units"
                         : name == "lora" ? "zero3 over 4 ranks, 11 units, 12 of frozen parameters"
                                          : "zero3 over 4 ranks, 1 unit, 12 of frozen parameters");
  }
}

TEST(ZeroStage3, ADecoderWithoutValuesGetsThemInShares) {
  const Outcome truth = learn({.method = "lora", .stage = 3, .world = 2, .accumulate = 2});
  Outcome out;
  ranks::run(2, [&](comm::Group& group) {
    const RunOf run{.method = "lora", .stage = 3, .world = 2, .accumulate = 2};
    tuning::Decoder decoder = testing_models::small_decoder();
    std::vector<tuning::NamedTensor> parameters;
    std::vector<at::Tensor> values;
    for (const auto& item : decoder->named_parameters()) {
      parameters.push_back({item.key(), item.value()});
      values.push_back(item.value().clone());
      at::Tensor(item.value()).fill_(NAN);
    }
    choose(decoder, run);
    tuning::FineTuning tuned(decoder, recipe_of(run), rows(), &group, [&] {
      // Only rank 0's count.
      for (size_t i = 0; i < parameters.size(); ++i) group.rank() == 0 ? parameters[i].value.copy_(values[i]) : parameters[i].value.zero_();
    });
    steps(tuned, 5, group.rank() == 0, &out);
  });
  EXPECT_EQ(out.losses, truth.losses);
}

class CountingGroup : public ForwardingGroup {
 public:
  using ForwardingGroup::ForwardingGroup;
  std::unique_ptr<comm::Pending> start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) override {
    ++gathers;
    return ForwardingGroup::start_all_gather(std::move(output), std::move(input), label);
  }
  int gathers = 0;
};

// What four steps gather after the first two, and what the end of the training does.
std::pair<int, int> gathered(bool ahead) {
  std::pair<int, int> out;
  ranks::run(2, [&](comm::Group& inner) {
    CountingGroup group(inner);
    const RunOf run{.method = "lora", .stage = 3, .accumulate = 1, .persistent = 9, .layers = 4};
    tuning::Decoder decoder = testing_models::small_decoder(run.layers);
    choose(decoder, run);
    tune::Recipe recipe = recipe_of(run);
    recipe.max_steps = 6;
    recipe.zero.prefetch = ahead;
    auto tuned = std::make_unique<tuning::FineTuning>(decoder, recipe, rows(), &group);
    for (int i = 0; i < 2; ++i) tuned->step();
    const int before = group.gathers;
    for (int i = 0; i < 4; ++i) tuned->step();
    const int after = group.gathers;
    tuned.reset();
    if (group.rank() == 0) out = {after - before, group.gathers - after};
  });
  return out;
}

TEST(Zero3, GatheringAheadTakesNothingAway) {
  const auto [needed, at_end] = gathered(false);
  EXPECT_GT(needed, 4 * 2 * 2 * 4) << "a frozen and a trained unit of each layer, forward and backward";
  EXPECT_EQ(at_end, 0);
  const auto [ahead, at_end_too] = gathered(true);
  EXPECT_LE(ahead, needed + 4) << "the tied embedding is used at both ends of a step";
  EXPECT_EQ(at_end_too, 0);
}

}  // namespace
