#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "tune/adapter/adapter_config.h"
#include "tune/recipe/steps.h"

namespace phalanx::tune {
namespace {

constexpr const char* kConfig =
    R"({"peft_type": "LORA", "r": 6, "lora_alpha": 10, "use_rslora": true, "target_modules": ["q_proj", "mlp.up_proj"],
  "rank_pattern": {"layers.1.self_attn.q_proj": 9}, "alpha_pattern": {"up_proj": 5, "q_proj": 7}})";

TEST(AdapterConfig, PatternsFitTheEndsOfNames) {
  auto config = parse_adapter_config(kConfig);
  ASSERT_TRUE(config.ok()) << config.error().cause;
  EXPECT_FALSE(adapter_of(*config, "model.layers.0.self_attn.k_proj"));
  EXPECT_FALSE(adapter_of(*config, "model.layers.0.self_attn.xq_proj"));
  const auto first = adapter_of(*config, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(first->rank, 6);
  EXPECT_DOUBLE_EQ(first->scale, 7 / std::sqrt(6.0));
  const auto second = adapter_of(*config, "model.layers.1.self_attn.q_proj");
  EXPECT_EQ(second->rank, 9);
  EXPECT_DOUBLE_EQ(second->scale, 10 / 3.0);  // the first pattern that fits counts for both
  EXPECT_DOUBLE_EQ(adapter_of(*config, "model.layers.1.mlp.up_proj")->scale, 5 / std::sqrt(6.0));
}

TEST(AdapterConfig, IsWrittenAsRead) {
  auto config = parse_adapter_config(kConfig);
  ASSERT_TRUE(config.ok());
  auto again = parse_adapter_config(to_text(*config));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_text(*again), to_text(*config));
  EXPECT_EQ(again->targets, config->targets);
}

TEST(AdapterConfig, WhatCannotBeUsedIsNamed) {
  auto cause = [](const char* key, const base::Json& value) {
    base::Json json = *base::parse_json(kConfig);
    json[key] = value;
    auto config = parse_adapter_config(base::to_text(json));
    return config.ok() ? std::string("accepted") : config.error().cause;
  };
  EXPECT_EQ(cause("peft_type", "IA3"), "peft_type is not LORA");
  EXPECT_EQ(cause("use_dora", true), "use_dora is not supported");
  EXPECT_EQ(cause("use_dora", false), "accepted");
  EXPECT_EQ(cause("modules_to_save", "lm_head"), "modules_to_save is not a list of names");
  EXPECT_EQ(cause("modules_to_save", {"lm.*"}), "modules_to_save is not a list of names");
  EXPECT_EQ(cause("bias", "all"), "bias other than none is not supported");
  EXPECT_EQ(cause("r", 0), "r is not a whole number from 1 to 65536");
  EXPECT_EQ(cause("target_modules", ".*proj"), "target_modules is a pattern; a list of names is supported");
  EXPECT_EQ(cause("rank_pattern", {{"q.*", 4}}), "rank_pattern: \"q.*\" is not the end of a name");
  EXPECT_EQ(cause("rank_pattern", {{"q_proj", 1.5}}), "rank_pattern: the value of \"q_proj\" is out of range");
}

TEST(Steps, AsTheTrainerCountsThem) {
  Recipe recipe;
  recipe.per_device_train_batch_size = 2;
  recipe.gradient_accumulation_steps = 4;
  EXPECT_EQ(total_steps(recipe, 20, 1), 9);  // 10 micro-batches are 3 steps
  recipe.num_train_epochs = 0.5;
  EXPECT_EQ(total_steps(recipe, 20, 1), 2);
  EXPECT_EQ(total_steps(recipe, 20, 4), 1);
  recipe.max_steps = 7;
  EXPECT_EQ(total_steps(recipe, 20, 1), 7);
  recipe.warmup_ratio = 0.1;
  recipe.learning_rate = 1;
  EXPECT_EQ(warmup_of(recipe, 20), 2);
  EXPECT_EQ(rate_at(recipe, 0, 20), 0);
  EXPECT_EQ(rate_at(recipe, 1, 20), 0.5);
  EXPECT_EQ(rate_at(recipe, 2, 20), 1);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 11, 20), 0.5);
  recipe.lr_scheduler_type = "cosine";
  EXPECT_DOUBLE_EQ(rate_at(recipe, 11, 20), 0.5);
  recipe.lr_scheduler_type = "constant";
  EXPECT_EQ(rate_at(recipe, 0, 20), 1);
}

// PEFT asks whether a module's name ends so, wherever a part of it begins.
TEST(AdapterConfig, SavedModules) {
  const AdapterConfig config{.saved = {"embed_tokens", "norm"}};
  EXPECT_TRUE(is_saved(config, "model.embed_tokens.weight"));
  EXPECT_TRUE(is_saved(config, "model.norm.weight"));
  EXPECT_TRUE(is_saved(config, "model.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(is_saved(config, "lm_head.weight"));
  EXPECT_TRUE(is_saved({.saved = {"layers.1.mlp"}}, "model.layers.1.mlp.up_proj.weight"));
  EXPECT_FALSE(is_saved({.saved = {"weight"}}, "lm_head.weight"));
  auto again = parse_adapter_config(to_text({.targets = {"q_proj"}, .saved = {"lm_head"}}));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->saved, std::vector<std::string>{"lm_head"});
}

}  // namespace
}  // namespace phalanx::tune
