#include "tune/recipe/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "golden.h"
#include "tune/recipe/key_page.h"
#include "tune/recipe/key_table.h"
#include "tune/recipe/steps.h"
#include "words/said.h"

namespace phalanx::tune {
namespace {

// LLaMA-Factory's own example of LoRA for Llama 3, with save_only_model and resume_from_checkpoint as it has them.
constexpr const char* kExample = R"(### model
model_name_or_path: models/llama3
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all

### dataset
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 2048
max_samples: 1000
overwrite_cache: true
preprocessing_num_workers: 16
dataloader_num_workers: 4

### output
output_dir: saves/llama3-8b/lora/sft
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none  # choices: [none, wandb, tensorboard, swanlab, mlflow]

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
)";

std::string problems(std::string yaml, const std::vector<std::string>& overrides = {}) {
  auto read = read_recipe(yaml, overrides);
  return read.ok() ? "none" : read.error().cause.empty() ? read.error().message : read.error().cause;
}

TEST(Recipe, TheExampleIsReadAsTyped) {
  EXPECT_TRUE(is_recipe(kExample));
  EXPECT_FALSE(is_recipe("train:\n  steps: 10\n"));
  auto read = read_recipe(kExample, {"lora_rank=16", "learning_rate=2e-4", "lora_rank=32"});
  ASSERT_TRUE(read.ok()) << read.error().cause;
  const Recipe& recipe = read->recipe;
  EXPECT_EQ(recipe.lora_rank, 32);
  EXPECT_EQ(recipe.lora_alpha, std::nullopt);
  EXPECT_DOUBLE_EQ(recipe.learning_rate, 2e-4);
  EXPECT_EQ(recipe.dataset, (std::vector<std::string>{"identity", "alpaca_en_demo"}));
  EXPECT_EQ(recipe.lr_scheduler_type, "cosine");
  EXPECT_EQ(recipe.chat_template, "llama3");
  EXPECT_EQ(recipe.max_samples, 1000);
  EXPECT_TRUE(recipe.bf16);
  const std::string text = explain(*read, base::Language::kEnglish);
  EXPECT_NE(text.find("cutoff_len: 2048  # tokens of a sequence\n"), std::string::npos);
  EXPECT_NE(text.find("not used: overwrite_cache: true  # there is no cache of tokens\n"), std::string::npos);
  EXPECT_NE(text.find("not used: report_to: none  # it asks for nothing\n"), std::string::npos);
}

TEST(Recipe, EveryNoteHasChinese) {
  for (const RecipeKey& key : recipe_keys()) {
    if (key.note == "AdamW") continue;
    EXPECT_NE(words::said_in(base::Language::kChinese, key.note), key.note) << key.key;
  }
  auto read = read_recipe(kExample, {"overwrite_cache=true"});
  ASSERT_TRUE(read.ok());
  const std::string text = explain(*read, base::Language::kChinese);
  EXPECT_NE(text.find("cutoff_len: 2048  # 一个序列的 token 数\n"), std::string::npos);
  EXPECT_NE(text.find("未使用：overwrite_cache: true  # 没有 token 缓存\n"), std::string::npos);
}

TEST(Recipe, ProblemsAreListedInChinese) {
  auto read =
      read_recipe("model_name_or_path: m\nuse_dora: a\nlora_rnk: 8\nfsdp: full\ncutoff_len: many\nlora_rank: 1.5\nstage: ppo\n", {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(words::render(read.error(), base::Language::kChinese),
            "错误：配方中有 6 处问题\n"
            "  原因：第 5 行：cutoff_len: \"many\" 不是 1 到 16777216 的数\n"
            "    第 4 行：fsdp: full：请用 deepspeed 的 stage 3，分片方式相同\n"
            "    第 6 行：lora_rank: \"1.5\" 不是整数\n"
            "    第 3 行：未知的键 \"lora_rnk\"；最接近的是 lora_rank\n"
            "    第 7 行：stage: \"ppo\" 不是下列之一：sft, pt, dpo\n"
            "    第 2 行：use_dora: a：不支持这种方法\n");
}

TEST(Recipe, EveryProblemIsListedAtOnce) {
  EXPECT_EQ(problems("model_name_or_path: m\nlora_rnk: 8\nuse_dora: true\ncutoff_len: many\nlora_rank: 1.5\nstage: ppo\n"),
            "line 4: cutoff_len: \"many\" is not a number from 1 to 16777216\n"
            "line 5: lora_rank: \"1.5\" is not a whole number\n"
            "line 2: unknown key \"lora_rnk\"; the nearest is lora_rank\n"
            "line 6: stage: \"ppo\" is not one of sft, pt, dpo\n"
            "line 3: use_dora: true: this method is not supported");
  EXPECT_EQ(problems("model_name_or_path: m\n"), "dataset is missing\noutput_dir is missing\ntemplate is missing; stage sft needs one");
  EXPECT_EQ(problems(kExample, {"mask_history=true", "train_on_prompt=true"}), "mask_history and train_on_prompt exclude each other");
  EXPECT_EQ(problems(kExample, {"deepspeed=[3]"}), "deepspeed: \"[3]\" is not a file or a mapping");
  EXPECT_EQ(problems(kExample, {"learning_rate"}), "\"learning_rate\" is not key=value");
  EXPECT_EQ(problems(kExample, {"max_samples=0"}), "max_samples: \"0\" is not a number from 1 to 1000000000000000");
  EXPECT_EQ(problems("[1]"), "the recipe is not a mapping of keys");
}

TEST(Recipe, WhatAsksForNothingIsAccepted) {
  EXPECT_EQ(problems(kExample, {"packing=false", "val_size=0.0", "quantization_bit=null", "optim=adamw_torch", "eval_strategy=no",
                                "save_strategy=no", "neftune_noise_alpha=null"}),
            "none");
  EXPECT_EQ(problems(kExample, {"use_dora=true"}), "use_dora: true: this method is not supported");
}

TEST(Recipe, EvaluationAndPackingFitTogether) {
  EXPECT_EQ(problems(kExample, {"val_size=0.1", "eval_strategy=steps", "eval_steps=50", "per_device_eval_batch_size=1"}), "none");
  EXPECT_EQ(problems(kExample, {"eval_strategy=epoch"}), "evaluation needs eval_dataset or val_size");
  EXPECT_EQ(problems(kExample, {"val_size=0.1", "eval_dataset=identity"}), "val_size and eval_dataset exclude each other");
  EXPECT_EQ(problems(kExample, {"packing=true", "neat_packing=true"}), "none");
  EXPECT_EQ(problems(kExample, {"stage=pt", "neat_packing=true"}), "neat_packing is for stage sft");
  EXPECT_EQ(problems(kExample, {"stage=dpo", "pref_loss=orpo", "pref_beta=0.2"}), "none");
  EXPECT_EQ(problems(kExample, {"stage=dpo", "packing=true"}), "packing is for the stages sft and pt");
  EXPECT_EQ(problems(kExample, {"finetuning_type=full", "loraplus_lr_ratio=16"}), "loraplus_lr_ratio needs finetuning_type lora");
}

TEST(Steps, CoursesOfTheLearningRate) {
  Recipe recipe;
  recipe.learning_rate = 1;
  recipe.warmup_steps = 4;
  const auto course = [&](const char* type, base::Json kwargs, int64_t step) {
    recipe.lr_scheduler_type = type;
    recipe.lr_scheduler_kwargs.tree = std::move(kwargs);
    EXPECT_EQ(schedule_problem(recipe), std::nullopt);
    return rate_at(recipe, step, 20);
  };
  EXPECT_EQ(course("cosine", {}, 0), 0);
  EXPECT_DOUBLE_EQ(course("cosine", {}, 12), 0.5);
  EXPECT_DOUBLE_EQ(course("cosine_with_min_lr", {{"min_lr", 0.2}}, 20), 0.2);
  EXPECT_DOUBLE_EQ(course("cosine_with_min_lr", {{"min_lr_rate", 0.4}}, 12), 0.7);
  EXPECT_DOUBLE_EQ(course("cosine_with_restarts", {{"num_cycles", 2}}, 8), 0.5);
  EXPECT_DOUBLE_EQ(course("cosine_with_restarts", {{"num_cycles", 2}}, 12), 1);
  EXPECT_DOUBLE_EQ(course("polynomial", {{"power", 2.0}, {"lr_end", 0.2}}, 12), 0.4);
  EXPECT_DOUBLE_EQ(course("inverse_sqrt", {}, 16), 0.5);
  recipe.lr_scheduler_kwargs.tree = {{"min_lr", 0.1}};
  EXPECT_EQ(schedule_problem(recipe), "lr_scheduler_kwargs: inverse_sqrt has no \"min_lr\"");
  recipe.lr_scheduler_kwargs.tree = {{"timescale", "long"}};
  EXPECT_EQ(schedule_problem(recipe), "lr_scheduler_kwargs: timescale is not a number from 1 to 1000000000000000");
}

TEST(Recipe, DeepSpeedIsAFileOrAMapping) {
  auto file = read_recipe(kExample, {"deepspeed=examples/deepspeed/ds_z3_config.json"});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->recipe.deepspeed.path, "examples/deepspeed/ds_z3_config.json");
  EXPECT_TRUE(file->recipe.deepspeed.tree.is_null());
  auto mapping = read_recipe(std::string(kExample) + "deepspeed:\n  zero_optimization:\n    stage: 3\n", {});
  ASSERT_TRUE(mapping.ok()) << mapping.error().cause;
  EXPECT_EQ(mapping->recipe.deepspeed.tree, (base::Json{{"zero_optimization", {{"stage", 3}}}}));
  EXPECT_EQ(problems(kExample, {"deepspeed=null"}), "none");
}

TEST(Recipe, KeysAreUnique) {
  std::set<std::string_view> seen;
  for (const RecipeKey& one : recipe_keys()) {
    EXPECT_TRUE(seen.insert(one.key).second) << one.key;
    EXPECT_EQ(one.handling == Handling::kHonoured, one.field.index() != 0) << one.key;
  }
}

TEST(Recipe, EveryHonouredKeyIsInTheTestThatThePageNames) {
  for (const RecipeKey& one : recipe_keys()) {
    if (one.handling != Handling::kHonoured) continue;
    const std::string test = read_text(std::string(PHALANX_TEST_DATA) + "/../../" + std::string(test_of(one.key)));
    EXPECT_NE(test.find(one.key), std::string::npos) << one.key << " in " << test_of(one.key);
  }
}

TEST(Recipe, ThePageOfKeysIsTheTable) {
  EXPECT_EQ(read_text(std::string(PHALANX_TEST_DATA) + "/../../docs/llama-factory-keys.md"), key_page())
      << "phalanx-train keys > docs/llama-factory-keys.md";
}

TEST(Recipe, GoldenSettingsAreRead) {
  PHALANX_NEEDS_GOLDEN;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() + "/training")) {
    const std::string path = entry.path().string() + "/settings.yaml";
    if (!std::filesystem::exists(path)) continue;
    EXPECT_EQ(problems(read_text(path), {"template=qwen"}), "none") << path;
    ++count;
  }
  EXPECT_EQ(count, 8);
}

}  // namespace
}  // namespace phalanx::tune
