// Fine-tuning against HF's Trainer and PEFT: twenty steps of eight cases, adapters in both directions, merging, generated text.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/tuning/adapter.h"
#include "engine/tuning/fine_tuning.h"
#include "engine/tuning/generate.h"
#include "engine/tuning/load_decoder.h"
#include "golden.h"
#include "scratch.h"
#include "small_decoder.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;

#define NEEDS_GOLDEN \
  if (tune::golden_folder().empty()) GTEST_SKIP() << "needs the golden data: ../shared/golden, or PHALANX_GOLDEN=<folder>"

std::string golden(const std::string& path) { return tune::golden_folder() + "/" + path; }

base::Json read(const std::string& path) {
  auto json = base::parse_json(tune::read_text(path));
  EXPECT_TRUE(json.ok()) << path;
  return json.ok() ? *json : base::Json();
}

at::Tensor matrix(const base::Json& rows) {
  std::vector<at::Tensor> out;
  for (const base::Json& row : rows) out.push_back(at::tensor(row.get<std::vector<int64_t>>()).unsqueeze(0));
  return at::cat(out);
}

at::Tensor tensor_of(const std::string& path, const std::string& name) {
  auto files = tuning::TensorFiles::open_file(path);
  EXPECT_TRUE(files.ok()) << path;
  return *files->read(name);
}

double farthest(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

std::map<std::string, std::vector<int64_t>> shapes_of(const std::string& path) {
  std::map<std::string, std::vector<int64_t>> out;
  auto files = tuning::TensorFiles::open_file(path);
  EXPECT_TRUE(files.ok()) << path;
  for (const std::string& name : files->names()) out[name] = files->shape(name);
  return out;
}

struct TrainingCase {
  explicit TrainingCase(const std::string& name) : folder(golden("training/" + name)), expected(read(folder + "/expected.json")) {
    auto recipe_read = tune::read_recipe(tune::read_text(folder + "/settings.yaml"), {"template=default"});
    EXPECT_TRUE(recipe_read.ok());
    recipe = recipe_read->recipe;
    base_folder = golden(expected["base"].get<std::string>());
    for (const base::Json& row : tune::read_json_lines(folder + "/data.jsonl"))
      rows.push_back({row["input_ids"].get<std::vector<int64_t>>(), row["labels"].get<std::vector<int64_t>>()});
  }
  bool lora() const { return recipe.finetuning_type == "lora"; }
  std::string folder, base_folder;
  base::Json expected;
  tune::Recipe recipe;
  std::vector<tuning::TuningRow> rows;
};

class GoldenRun : public testing::TestWithParam<const char*> {};

TEST_P(GoldenRun, TwentySteps) {
  NEEDS_GOLDEN;
  TrainingCase run(GetParam());
  auto loaded = tuning::load_decoder(run.base_folder);
  ASSERT_TRUE(loaded.ok());
  tuning::Decoder decoder = *loaded;
  tune::AdapterConfig config;
  if (run.lora()) {
    auto adapter = tuning::read_adapter(decoder, golden(run.expected["adapter_init"].get<std::string>()));
    ASSERT_TRUE(adapter.ok()) << adapter.error().render();
    config = *adapter;
  } else {
    for (at::Tensor& parameter : decoder->parameters()) parameter.set_requires_grad(true);
  }
  tuning::FineTuning tuned(decoder, run.recipe, run.rows);
  ASSERT_EQ(tuned.steps(), 20);
  for (const base::Json& truth : run.expected["steps"]) {
    const tuning::StepReport step = tuned.step();
    SCOPED_TRACE(testing::Message() << "step " << truth["step"]);
    EXPECT_NEAR(step.loss, truth["loss"].get<double>(), 1e-4);
    EXPECT_NEAR(step.gradient_norm / truth["grad_norm"].get<double>(), 1, 1e-4);
    EXPECT_NEAR(step.rate, truth["learning_rate"].get<double>(), 1e-12);
    EXPECT_EQ(step.labels, truth["num_items"].get<int64_t>());
    EXPECT_EQ(step.rows, truth["rows"].get<std::vector<std::vector<int64_t>>>());
  }
  decoder->eval();
  at::NoGradGuard no_grad;
  const base::Json inputs = read(run.base_folder + "/expected.json");
  const at::Tensor tokens = matrix(inputs["input_ids"]), mask = matrix(inputs["attention_mask"]).unsqueeze(-1);
  const std::string logits = run.folder + "/expected_logits.safetensors";
  if (!run.lora()) {
    EXPECT_LE(farthest(decoder(tokens) * mask, tensor_of(logits, "trained")), 5e-3);
    return;
  }
  EXPECT_LE(farthest(decoder(tokens) * mask, tensor_of(logits, "adapted")), 1e-3);
  const std::string written = scratch::folder("adapter");
  ASSERT_TRUE(tuning::write_adapter(decoder, config, written).ok());
  EXPECT_EQ(shapes_of(written + "/adapter_model.safetensors"), shapes_of(run.folder + "/adapter/adapter_model.safetensors"));
  base::Json ours = read(written + "/adapter_config.json"), theirs = read(run.folder + "/adapter/adapter_config.json");
  for (base::Json* one : {&ours, &theirs}) std::sort((*one)["target_modules"].begin(), (*one)["target_modules"].end());
  EXPECT_EQ(ours, theirs);
  tuning::merge_adapters(decoder);
  EXPECT_LE(farthest(decoder(tokens.narrow(0, 0, 1)), tensor_of(logits, "merged")), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenRun,
                         testing::Values("lora-qwen2", "lora-llama", "lora-qwen2-accum4", "lora-qwen2-accum4-remainder",
                                         "lora-qwen2-cosine-warmup", "lora-llama-decay-clip", "full-llama-decay-clip", "full-qwen2"));

class GoldenAdapter : public testing::TestWithParam<const char*> {};

TEST_P(GoldenAdapter, IsReadWrittenAndReadAgain) {
  NEEDS_GOLDEN;
  at::NoGradGuard no_grad;
  const std::string folder = golden(std::string("adapters/") + GetParam());
  const base::Json expected = read(folder + "/expected.json");
  const std::string base_folder = golden(expected["base"].get<std::string>());
  const at::Tensor tokens = matrix(read(base_folder + "/expected.json")["input_ids"]).narrow(0, 0, 1);
  const at::Tensor truth = tensor_of(folder + "/expected_logits.safetensors", "adapted");
  const std::string written = scratch::folder("adapter");
  for (const std::string& from : {folder, written}) {
    auto decoder = tuning::load_decoder(base_folder);
    ASSERT_TRUE(decoder.ok());
    auto config = tuning::read_adapter(*decoder, from);
    ASSERT_TRUE(config.ok()) << config.error().render();
    (*decoder)->eval();
    EXPECT_LE(farthest((*decoder)(tokens), truth), 1e-4);
    ASSERT_TRUE(tuning::write_adapter(*decoder, *config, written).ok());
    tuning::merge_adapters(*decoder);
    EXPECT_LE(farthest((*decoder)(tokens), truth), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenAdapter,
                         testing::Values("plain", "attention-only", "rslora-patterns", "layers-subset", "phi3-fused"));

TEST(Stories, GreedyTextIsThePublishedOne) {
  NEEDS_GOLDEN;
  auto decoder = tuning::load_decoder(golden("stories260k/hf"));
  ASSERT_TRUE(decoder.ok()) << decoder.error().render();
  const base::Json expected = read(golden("stories260k/expected.json"));
  for (const base::Json& text : expected.at("texts")) {
    const auto prompt = text["prompt_ids"].get<std::vector<int64_t>>(), truth = text["greedy_ids"].get<std::vector<int64_t>>();
    std::vector<int64_t> ids = prompt;
    const int64_t missing = static_cast<int64_t>(truth.size()) - static_cast<int64_t>(prompt.size());
    for (int64_t id : tuning::generate(*decoder, prompt, {.max_new_tokens = missing})) ids.push_back(id);
    EXPECT_EQ(ids, truth);
  }
}

using testing_models::small_decoder;

TEST(FineTuning, AnAdapterLearnsAndTheBaseStays) {
  tuning::Decoder decoder = small_decoder();
  const tune::AdapterConfig config{.rank = 4, .alpha = 8, .all_linear = true, .base_model = "here"};
  ASSERT_TRUE(tuning::add_adapters(decoder, config, 1).ok());
  const at::Tensor frozen = decoder->layers[0]->self_attn->q_proj->weight.clone();
  tune::Recipe recipe;
  recipe.per_device_train_batch_size = 2;
  recipe.max_steps = 300;
  recipe.learning_rate = 0.01;
  const std::vector<int64_t> ids{1, 7, 3, 9, 4, 11, 2}, other{1, 8, 5, 5, 6, 2};
  auto learned = [](std::vector<int64_t> labels) {
    labels[0] = labels[1] = model::GptImpl::kNoTarget;
    return labels;
  };
  tuning::FineTuning tuned(decoder, recipe, {{ids, learned(ids)}, {other, learned(other)}, {{1, 2, 3}, {-100, -100, -100}}});
  // An epoch is two steps; the loss of its worse one falls by a third at least.
  const double first = std::max(tuned.step().loss, tuned.step().loss);
  double last = 0;
  while (tuned.done() < tuned.steps()) {
    const double loss = tuned.step().loss;
    if (tuned.done() > tuned.steps() - 4) last = std::max(last, loss);
  }
  EXPECT_LT(last, first * 2 / 3);
  const std::vector<int64_t> answer = tuning::generate(decoder, {1, 7}, {.max_new_tokens = 20, .stops = {2}});
  ASSERT_FALSE(answer.empty());
  EXPECT_TRUE(answer.size() == 20 || answer.back() == 2);
  EXPECT_EQ(farthest(decoder->layers[0]->self_attn->q_proj->weight, frozen), 0);
  // Sampling from one candidate is the greedy answer; merged weights give it too.
  EXPECT_EQ(tuning::generate(decoder, {1, 7}, {.max_new_tokens = 20, .temperature = 1, .top_k = 0, .top_p = 1e-6, .stops = {2}}), answer);
  tuning::merge_adapters(decoder);
  EXPECT_EQ(tuning::generate(decoder, {1, 7}, {.max_new_tokens = 20, .stops = {2}}), answer);
}

TEST(FineTuning, AnAdapterWithoutTargetsIsRefused) {
  tuning::Decoder decoder = small_decoder();
  EXPECT_FALSE(tuning::add_adapters(decoder, {.targets = {"qkv_proj"}}, 1).ok());
  EXPECT_THROW(tuning::FineTuning(decoder, {}, {{{1, 2}, {1, 2}}}), std::invalid_argument);
}

TEST(RowOrder, EveryRowOnceInAnEpochWhoseLastStepIsShort) {
  tuning::RowOrder order(11, 2, 4, 42);
  const auto first = order.next_step(), second = order.next_step();
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(second.size(), 2u);
  EXPECT_EQ(second.back().size(), 1u);
  std::vector<int64_t> all;
  for (const auto& step : {first, second})
    for (const auto& batch : step) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
