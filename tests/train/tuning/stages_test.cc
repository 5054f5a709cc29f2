// What else a fine-tuning can do: pairs of answers against our own numbers (tools/make_decoder_golden.py), packed rows, evaluation, LoRA+.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/tuning/adapter.h"
#include "engine/tuning/fine_tuning.h"
#include "golden.h"
#include "ranks.h"
#include "small_decoder.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;
using base::Json;
using testing_models::small_decoder;
using tuning::TuningRow;

constexpr int64_t kNone = model::GptImpl::kNoTarget;

at::Tensor sines(at::IntArrayRef shape, int64_t place, double step) {
  return (at::arange(c10::multiply_integers(shape), at::kDouble) * step + place).sin().view(shape);
}

// The Qwen2 of the oracle, with its adapter.
tuning::Decoder oracle_decoder(const Json& golden) {
  auto config = tune::parse_decoder_config(base::to_text(golden["config"]));
  PHALANX_CHECK(config.ok());
  tuning::Decoder decoder(*config, true);
  at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> parameters;
  for (const auto& item : decoder->named_parameters()) parameters[item.key()] = item.value();
  int64_t place = 0;
  for (auto& [name, value] : parameters) {
    const at::Tensor values = sines(value.sizes(), place++, 1.3);
    value.copy_(name.find("norm") != std::string::npos ? values * 0.2 + 1 : values * 0.4);
  }
  tune::AdapterConfig adapter{.rank = 2, .alpha = 4, .targets = {"q_proj", "v_proj", "down_proj"}};
  PHALANX_CHECK(tuning::add_adapters(decoder, adapter, 1).ok());
  std::map<std::string, at::Tensor> firsts;
  for (auto& [name, projection] : decoder->projections())
    if (projection->adapted()) firsts[name] = projection->lora_a;
  place = 0;
  for (auto& [name, value] : firsts) value.copy_(sines(value.sizes(), place++, 0.7) / 3);
  return decoder;
}

Json preferences() { return *base::parse_json(tune::read_text(std::string(PHALANX_TRAIN_TESTS) + "/tuning/preferences.json")); }

std::vector<TuningRow> pairs_of(const Json& golden) {
  std::vector<TuningRow> out;
  for (const Json& pair : golden["pairs"]) {
    const auto numbers = [&](int answer, const char* key) { return pair[static_cast<size_t>(answer)][key].get<std::vector<int64_t>>(); };
    TuningRow row{numbers(0, "input_ids"), numbers(0, "labels")};
    row.rejected_ids = numbers(1, "input_ids");
    row.rejected_labels = numbers(1, "labels");
    out.push_back(std::move(row));
  }
  return out;
}

tune::Recipe recipe_of(const Json& golden, const std::string& loss, int64_t world) {
  const Json& given = golden["recipe"];
  tune::Recipe out;
  out.stage = "dpo";
  out.pref_loss = loss;
  out.per_device_train_batch_size = given["per_device_train_batch_size"];
  out.gradient_accumulation_steps = given["gradient_accumulation_steps"].get<int64_t>() / world;
  out.max_steps = given["max_steps"];
  out.learning_rate = given["learning_rate"];
  out.max_grad_norm = given["max_grad_norm"];
  out.lr_scheduler_type = "constant";
  out.seed = given["seed"];
  out.pref_beta = given["pref_beta"];
  out.pref_ftx = given["pref_ftx"];
  out.dpo_label_smoothing = given["dpo_label_smoothing"];
  out.simpo_gamma = given["simpo_gamma"];
  return out;
}

void learn_pairs(const Json& golden, const std::string& loss, comm::Group* group, int stage, const Json& truth) {
  tuning::Decoder decoder = oracle_decoder(golden);
  tune::Recipe recipe = recipe_of(golden, loss, group ? group->world() : 1);
  recipe.zero.stage = stage;
  recipe.zero.persistent_elements = 20;
  tuning::FineTuning tuned(decoder, recipe, pairs_of(golden), group);
  std::vector<TuningRow> more = pairs_of(golden);
  tuned.refer(&more);
  if (loss == "sigmoid") { EXPECT_LT(more[0].chosen_reference, -1); }
  for (const Json& step : truth) {
    const tuning::StepReport report = tuned.step();
    EXPECT_NEAR(report.loss, step["loss"].get<double>(), 1e-5);
    EXPECT_NEAR(report.gradient_norm / step["grad_norm"].get<double>(), 1, 1e-4);
    EXPECT_NEAR(report.pairs[3], step["rewards"][0].get<double>(), 1e-5);
    EXPECT_NEAR(report.pairs[5], step["rewards"][1].get<double>(), 1e-5);
    EXPECT_NEAR(report.pairs[4], report.pairs[3] - report.pairs[5], 1e-6);
  }
}

TEST(Preferences, EveryLossIsTheOracles) {
  const Json golden = preferences();
  for (const auto& [loss, truth] : golden["steps"].items()) {
    SCOPED_TRACE(loss);
    learn_pairs(golden, loss, nullptr, 0, truth);
  }
}

TEST(Preferences, RanksLearnWhatOneLearns) {
  const Json golden = preferences();
  for (int stage : {0, 2, 3}) {
    SCOPED_TRACE(stage);
    ranks::run(2, [&](comm::Group& group) { learn_pairs(golden, "sigmoid", &group, stage, golden["steps"]["sigmoid"]); });
  }
}

// Full tuning: the reference is the model before the first step, so the loss begins at ln 2.
TEST(Preferences, OfAWholeModel) {
  tuning::Decoder decoder = small_decoder();
  for (at::Tensor& value : decoder->parameters()) value.set_requires_grad(true);
  TuningRow row{{1, 2, 3, 4}, {kNone, kNone, 3, 4}};
  row.rejected_ids = {1, 2, 5, 6, 7};
  row.rejected_labels = {kNone, kNone, 5, 6, 7};
  tune::Recipe recipe;
  recipe.stage = "dpo";
  recipe.max_steps = 40;
  recipe.learning_rate = 0.01;
  tuning::FineTuning tuned(decoder, recipe, {row});
  std::vector<TuningRow> more;
  tuned.refer(&more);
  EXPECT_NEAR(tuned.step().loss, std::log(2), 1e-6);
  tuning::StepReport report;
  while (tuned.done() < tuned.steps()) report = tuned.step();
  EXPECT_LT(report.loss, 0.6);
  EXPECT_EQ(report.pairs[2], 1);  // rewards/accuracies
}

std::vector<TuningRow> three_rows() {
  return {{{1, 7, 3, 9, 4}, {kNone, kNone, 3, 9, 4}}, {{2, 8, 5}, {kNone, 8, 5}}, {{6, 6, 1, 11, 2, 10}, {kNone, kNone, kNone, 11, 2, 10}}};
}

TuningRow packed(const std::vector<TuningRow>& rows) {
  TuningRow out;
  for (const TuningRow& row : rows) {
    if (!out.ids.empty()) out.starts.push_back(static_cast<int64_t>(out.ids.size()));
    out.ids.insert(out.ids.end(), row.ids.begin(), row.ids.end());
    out.labels.insert(out.labels.end(), row.labels.begin(), row.labels.end());
  }
  return out;
}

struct FirstStep {
  double loss, norm;
};
FirstStep first_step(std::vector<TuningRow> rows, bool neat, model::Kernels kernels = model::Kernels::kFused) {
  tuning::Decoder decoder = small_decoder();
  decoder->set_kernels(kernels);
  for (at::Tensor& value : decoder->parameters()) value.set_requires_grad(true);
  tune::Recipe recipe;
  recipe.max_steps = 1;
  recipe.neat_packing = neat;
  tuning::FineTuning tuned(decoder, recipe, std::move(rows));
  const tuning::StepReport report = tuned.step();
  EXPECT_EQ(report.labels, 8);
  return {report.loss, report.gradient_norm};
}

TEST(Packing, NeatlyPackedRowsAreAsEachAlone) {
  const FirstStep apart = first_step(three_rows(), false), together = first_step({packed(three_rows())}, true);
  EXPECT_NEAR(together.loss, apart.loss, 1e-6);
  EXPECT_NEAR(together.norm, apart.norm, 1e-5);
}

// Without neat_packing examples see those before them, from positions that start again: both forms of the layers agree on it.
TEST(Packing, PackedRowsSeeEachOtherFromRestartedPositions) {
  const FirstStep apart = first_step(three_rows(), false), together = first_step({packed(three_rows())}, false);
  const FirstStep plain = first_step({packed(three_rows())}, false, model::Kernels::kPlain);
  EXPECT_GT(std::abs(together.loss - apart.loss), 1e-4);
  EXPECT_NEAR(together.loss, plain.loss, 1e-6);
  EXPECT_NEAR(together.norm, plain.norm, 1e-5);
  // With positions that count on it would be another loss.
  TuningRow unmarked = packed(three_rows());
  unmarked.starts.clear();
  EXPECT_GT(std::abs(first_step({unmarked}, false).loss - together.loss), 1e-5);
}

// The mean of a batch's labels counts as often as the batch has rows.
TEST(Evaluation, IsTheMeanOverRowsOfTheirBatchesMeans) {
  const auto evaluated = [](std::vector<TuningRow> rows, int64_t batch, comm::Group* group, int stage) {
    tuning::Decoder decoder = small_decoder();
    for (at::Tensor& value : decoder->parameters()) value.set_requires_grad(true);
    tune::Recipe recipe;
    recipe.per_device_eval_batch_size = batch;
    recipe.zero.stage = stage;
    recipe.zero.persistent_elements = 20;
    tuning::FineTuning tuned(decoder, recipe, three_rows(), group);
    const tuning::Evaluation out = tuned.evaluate(rows);
    EXPECT_EQ(out.rows, static_cast<int64_t>(rows.size()));
    tuned.step();  // evaluation leaves nothing behind that a step could trip over
    return out.loss;
  };
  const std::vector<TuningRow> rows = three_rows();
  const double first = evaluated({rows[0], rows[1]}, 2, nullptr, 0), second = evaluated({rows[2]}, 1, nullptr, 0);
  EXPECT_NEAR(evaluated(rows, 2, nullptr, 0), (2 * first + second) / 3, 1e-6);
  for (int stage : {0, 3})
    ranks::run(2, [&](comm::Group& group) { EXPECT_NEAR(evaluated(rows, 2, &group, stage), (2 * first + second) / 3, 1e-6); });
  EXPECT_NEAR(evaluated({{{1, 2}, {kNone, kNone}}, rows[2]}, 1, nullptr, 0), second, 1e-6);  // a batch without labels does not count
}

TEST(LoraPlus, TheSecondHalfLearnsFaster) {
  const auto moved = [](double ratio) {
    tuning::Decoder decoder = small_decoder();
    EXPECT_TRUE(tuning::add_adapters(decoder, {.rank = 4, .alpha = 8, .all_linear = true}, 1).ok());
    tune::Recipe recipe;
    recipe.max_steps = 2;
    recipe.learning_rate = 0.01;
    recipe.lr_scheduler_type = "constant";
    recipe.loraplus_lr_ratio = ratio;
    tuning::FineTuning tuned(decoder, recipe, three_rows());
    tuned.step();
    return decoder->layers[0]->self_attn->q_proj->lora_b.abs().max().item<double>();
  };
  // AdamW's first step is the learning rate, whatever the gradient.
  EXPECT_NEAR(moved(0), 0.01, 1e-4);
  EXPECT_NEAR(moved(16), 0.16, 2e-3);
}

}  // namespace
