#include "view/fit_view.h"

#include <gtest/gtest.h>

namespace phalanx::view {
namespace {

using base::Language;

fit::Model llama() {
  auto json = base::parse_json(R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,
    "num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":8192})");
  return *fit::model_from_config(*json);
}

TEST(FitView, SaysWhatFitsAndShowsTheSum) {
  fit::Training training;
  training.gpus_per_host = 8;
  FitTarget target{"NVIDIA A100-SXM4-80GB", int64_t{80} << 30, int64_t{512} << 30};
  std::string text = fit_text(llama(), training, target, Language::kEnglish);
  EXPECT_NE(text.find("8,030,261,248 parameters"), std::string::npos) << text;
  // ZeRO-1: 4Ψ = 29.9 GiB and 12Ψ/8 = 11.2 GiB: the first that fits with its activations.
  EXPECT_NE(text.find("cheapest that fits: ZeRO-1"), std::string::npos) << text;
  EXPECT_NE(text.find("optimizer 12Ψ/8"), std::string::npos) << text;
  EXPECT_NE(fit_text(llama(), training, target, Language::kChinese).find("放得下的最省方案：ZeRO-1"), std::string::npos);
}

TEST(FitView, TheRowIsShownAsSettingsToPaste) {
  fit::Training training;
  training.gpus_per_host = 8;
  const std::string text = fit_text(llama(), training, {"", int64_t{30} << 30, 0}, Language::kEnglish);
  EXPECT_NE(text.find("cheapest that fits: ZeRO-3, checkpointed"), std::string::npos) << text;
  EXPECT_NE(text.find("parallel.mode=zero3 train.precision=bf16-weights model.activation_checkpointing=blocks\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})"), std::string::npos) << text;
  EXPECT_NE(text.find("ShardingStrategy.FULL_SHARD)\n"), std::string::npos) << text;
  const std::string offloaded = fit_text(llama(), training, {"", int64_t{20} << 30, int64_t{512} << 30}, Language::kEnglish);
  EXPECT_NE(offloaded.find(R"("offload_optimizer": {"device": "cpu"})"), std::string::npos) << offloaded;
}

TEST(FitView, LoraIsShownWithItsSumAndSettings) {
  fit::Training training;
  training.gpus_per_host = 8;
  training.lora_rank = 8;
  const std::string text = fit_text(llama(), training, {"", int64_t{32} << 30, 0}, Language::kEnglish);
  EXPECT_NE(text.find("LoRA of rank 8 on all linear layers: 20,971,520 parameters are trained\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cheapest that fits: DDP, checkpointed\n"), std::string::npos) << text;
  EXPECT_NE(text.find("A = 20,971,520: parameters 2Ψ + 4A + gradients 4A + optimizer 8A + activations"), std::string::npos) << text;
  EXPECT_NE(text.find("finetuning_type: lora, lora_rank: 8, lora_target: all, bf16: true\n"), std::string::npos) << text;
  EXPECT_NE(text.find("LoraConfig(r=8, target_modules=\"all-linear\")\n"), std::string::npos) << text;
  const std::string small = fit_text(llama(), training, {"", int64_t{12} << 30, 0}, Language::kEnglish);
  EXPECT_NE(small.find("parameters (2Ψ + 4A)/8"), std::string::npos) << small;
  EXPECT_NE(small.find("use_orig_params=True"), std::string::npos) << small;
}

TEST(FitView, NothingIsJudgedWithoutASize) {
  std::string text = fit_text(fit::model_from_count(7'000'000'000), {}, {}, Language::kEnglish);
  EXPECT_EQ(text.find("yes"), std::string::npos) << text;
  EXPECT_NE(text.find("--gpu-memory"), std::string::npos) << text;
}

TEST(FitView, JsonAndTextAgree) {
  fit::Training training;
  training.gpus_per_host = 4;
  FitTarget target{"", int64_t{24} << 30, 0};
  base::Json json = fit_json(fit::model_from_count(1'000'000'000), training, target);
  ASSERT_TRUE(json["cheapest"].is_number());
  const base::Json& best = json["choices"][json["cheapest"].get<size_t>()];
  EXPECT_EQ(best["stage"], "DDP");
  EXPECT_EQ(best["parameters"].get<int64_t>() + best["gradients"].get<int64_t>() + best["optimizer"].get<int64_t>(), 16'000'000'000);
}

}  // namespace
}  // namespace phalanx::view
