#include "tune/recipe/deepspeed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tune/recipe/recipe.h"

namespace phalanx::tune {
namespace {

// The files that LLaMA-Factory ships, ds_z0_config.json to ds_z3_offload_config.json: their common keys, and those of a stage.
base::Json shipped(int stage, bool offload) {
  base::Json zero = {{"stage", stage}, {"overlap_comm", false}, {"contiguous_gradients", true}};
  if (stage == 3)
    zero.update({{"sub_group_size", 1e9},
                 {"reduce_bucket_size", "auto"},
                 {"stage3_prefetch_bucket_size", "auto"},
                 {"stage3_param_persistence_threshold", "auto"},
                 {"stage3_max_live_parameters", 1e9},
                 {"stage3_max_reuse_distance", 1e9},
                 {"stage3_gather_16bit_weights_on_model_save", true}});
  else
    zero.update({{"allgather_partitions", true},
                 {"allgather_bucket_size", 5e8},
                 {"reduce_scatter", true},
                 {"reduce_bucket_size", 5e8},
                 {"round_robin_gradients", true}});
  const base::Json host = {{"device", "cpu"}, {"pin_memory", true}};
  if (offload) zero["offload_optimizer"] = host;
  if (offload && stage == 3) zero["offload_param"] = host;
  return {{"train_batch_size", "auto"},
          {"train_micro_batch_size_per_gpu", "auto"},
          {"gradient_accumulation_steps", "auto"},
          {"gradient_clipping", "auto"},
          {"zero_allow_untested_optimizer", true},
          {"fp16",
           {{"enabled", "auto"},
            {"loss_scale", 0},
            {"loss_scale_window", 1000},
            {"initial_scale_power", 16},
            {"hysteresis", 2},
            {"min_loss_scale", 1}}},
          {"bf16", {{"enabled", "auto"}}},
          {"zero_optimization", zero}};
}

std::string problems(const base::Json& config) {
  std::vector<GivenKey> given;
  auto read = read_deepspeed(config, Recipe(), &given);
  return read.ok() ? "none" : read.error().cause.empty() ? read.error().message : read.error().cause;
}

TEST(DeepSpeed, ShippedFilesAreReadAndEveryKeyIsToldOf) {
  for (int stage : {0, 2, 3})
    for (bool offload : {false, true}) {
      std::vector<GivenKey> given;
      auto read = read_deepspeed(shipped(stage, offload), Recipe(), &given);
      ASSERT_TRUE(read.ok()) << read.error().cause;
      EXPECT_EQ(read->stage, stage);
      EXPECT_EQ(read->persistent_elements, std::nullopt);
      EXPECT_TRUE(read->prefetch);
      EXPECT_EQ(read->offload, offload);
      const size_t offloaded = !offload ? 0 : stage == 3 ? 4 : 2;
      EXPECT_EQ(given.size(), 5 + 6 + 1 + (stage == 3 ? 10u : 8u) + offloaded);
      for (const GivenKey& one : given) EXPECT_FALSE(one.note.empty()) << one.key;
      const auto key = std::find_if(given.begin(), given.end(), [](auto& one) { return one.key == "deepspeed.zero_optimization.stage"; });
      ASSERT_NE(key, given.end());
      EXPECT_EQ(key->handling, Handling::kHonoured);
    }
}

TEST(DeepSpeed, NumbersAreTaken) {
  base::Json config = shipped(3, false);
  config["train_batch_size"] = 64;
  config["train_micro_batch_size_per_gpu"] = 8;
  config["gradient_clipping"] = 1.0;
  config["bf16"]["enabled"] = false;
  config["zero_optimization"]["stage3_param_persistence_threshold"] = 1e4;
  config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
  config["zero_optimization"]["reduce_bucket_size"] = 1000;
  std::vector<GivenKey> given;
  auto read = read_deepspeed(config, Recipe(), &given);
  ASSERT_TRUE(read.ok()) << read.error().cause;
  EXPECT_EQ(read->persistent_elements, 10000);
  EXPECT_FALSE(read->prefetch);
  EXPECT_EQ(read->bucket_elements, 1000);
  EXPECT_EQ(read->batch_of_all_ranks, 64);
}

TEST(DeepSpeed, WhatCannotBeIsRefusedAllAtOnce) {
  base::Json config = shipped(3, true);
  config["train_micro_batch_size_per_gpu"] = 4;
  config["gradient_clipping"] = 0.5;
  config["bf16"]["enabled"] = true;
  config["fp16"]["enabled"] = true;
  config["optimizer"] = {{"type", "AdamW"}};
  config["zero_optimization"]["stage"] = 4;
  config["zero_optimization"]["stage3_prefetch_bukcet_size"] = 1;
  config["zero_optimization"]["offload_param"]["device"] = "nvme";
  config["zero_optimization"]["zero_quantized_weights"] = true;
  EXPECT_EQ(problems(config),
            "deepspeed: train_micro_batch_size_per_gpu: 4, and the recipe has per_device_train_batch_size: 8; make them equal, or write "
            "\"auto\"\n"
            "deepspeed: gradient_clipping: 0.5, and the recipe has max_grad_norm: 1; make them equal, or write \"auto\"\n"
            "deepspeed: fp16.enabled: true: fp16 is not supported\n"
            "deepspeed: bf16.enabled: true, and the recipe has bf16: false; make them equal, or write \"auto\"\n"
            "deepspeed: zero_optimization.stage: \"4\" is not a whole number from 0 to 3\n"
            "deepspeed: zero_optimization.offload_param.device: nvme: nothing is moved to disks\n"
            "deepspeed: zero_optimization.stage3_prefetch_bukcet_size: unknown key; the nearest is "
            "zero_optimization.stage3_prefetch_bucket_size\n"
            "deepspeed: zero_optimization.zero_quantized_weights: true: this method is not supported\n"
            "deepspeed: optimizer.type: AdamW: set it in the YAML");
  EXPECT_EQ(problems({{"zero_optimization", 3}}), "deepspeed: zero_optimization: 3 is not a mapping of keys");
  EXPECT_EQ(problems({{"zero_optimisation", {{"stage", 3}}}}),
            "deepspeed: zero_optimisation.stage: unknown key; the nearest is zero_optimization.stage");
  EXPECT_EQ(problems({{"zero_optimization", {{"stage", "auto"}}}}),
            "deepspeed: zero_optimization.stage: \"auto\" is not a number from 0 to 3");
  EXPECT_EQ(problems({{"tensor_parallel", {{"autotp_size", 2}}}}),
            "deepspeed: tensor_parallel.autotp_size: 2: a model is not cut across its matrices");
  EXPECT_EQ(problems(base::Json::array()), "deepspeed: it is not a mapping of keys");
  base::Json deep = 1;
  for (int i = 0; i < 30; ++i) deep = {{"monitor_config", deep}};
  EXPECT_NE(problems({{"zero_optimization", deep}}), "none");
}

}  // namespace
}  // namespace phalanx::tune
