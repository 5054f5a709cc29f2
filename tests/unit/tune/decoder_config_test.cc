#include "tune/decoder/decoder_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"

namespace phalanx::tune {
namespace {

base::Json llama() {
  return {{"model_type", "llama"},       {"vocab_size", 128256},      {"hidden_size", 2048},      {"intermediate_size", 8192},
          {"num_hidden_layers", 16},     {"num_attention_heads", 32}, {"num_key_value_heads", 8}, {"head_dim", 64},
          {"rms_norm_eps", 1e-5},        {"rope_theta", 500000.0},    {"hidden_act", "silu"},     {"max_position_embeddings", 131072},
          {"tie_word_embeddings", true}, {"torch_dtype", "bfloat16"}};
}

std::vector<float> frequencies_of(const DecoderConfig& config) { return inverse_frequencies(config, config.rope, 1); }

base::Result<DecoderConfig> parsed(const base::Json& json) { return parse_decoder_config(base::to_text(json)); }

TEST(DecoderConfig, BothStylesOfRope) {
  base::Json older = llama(), newer = llama();
  const base::Json scaling = {{"rope_type", "llama3"},
                              {"factor", 32.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}};
  older["rope_scaling"] = scaling;
  newer.erase("rope_theta");
  newer["rope_parameters"] = scaling;
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  auto one = parsed(older), two = parsed(newer);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(frequencies_of(*one), frequencies_of(*two));
  EXPECT_EQ(one->rope.original_positions, 8192);
  // The fastest pair is untouched, the slowest is slowed 32 times.
  const std::vector<float> frequencies = frequencies_of(*one);
  EXPECT_EQ(frequencies.front(), 1.0f);
  older.erase("rope_scaling");
  EXPECT_NEAR(frequencies.back() * 32, frequencies_of(*parsed(older)).back(), 1e-12);
}

TEST(DecoderConfig, PartsOfTheFamilies) {
  base::Json json = llama();
  json["model_type"] = "qwen2";
  json["sliding_window"] = 128;
  json["max_window_layers"] = 14;
  auto qwen = parsed(json);
  ASSERT_TRUE(qwen.ok());
  EXPECT_TRUE(qwen->qkv_bias && !qwen->out_bias && !qwen->head_norms);
  EXPECT_EQ(qwen->windows[15], 0);  // use_sliding_window is not set
  json["use_sliding_window"] = true;
  EXPECT_EQ(parsed(json)->windows[13], 0);
  EXPECT_EQ(parsed(json)->windows[14], 128);
  json["model_type"] = "mistral";
  EXPECT_EQ(parsed(json)->windows[0], 128);
  json["model_type"] = "qwen3";
  json.erase("head_dim");
  EXPECT_EQ(parsed(json)->head_dim, 128);
  EXPECT_TRUE(parsed(json)->head_norms);
}

TEST(DecoderConfig, PartsOfGemma) {
  base::Json json = llama();
  json["model_type"] = "gemma";
  json.erase("tie_word_embeddings");
  json.erase("head_dim");
  auto first = parsed(json);
  ASSERT_TRUE(first.ok()) << first.error().cause;
  EXPECT_TRUE(first->unit_norms && !first->branch_norms && !first->head_norms);
  EXPECT_EQ(first->tied, true);
  EXPECT_EQ(first->head_dim, 256);
  EXPECT_EQ(first->activation, Activation::kGeluTanh);  // whatever hidden_act says
  EXPECT_DOUBLE_EQ(first->attention_scale, 1.0 / 16);
  EXPECT_NEAR(first->embedding_scale, 45.2548, 1e-4);
  json["model_type"] = "gemma2";
  auto second = parsed(json);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->score_cap, 50);
  EXPECT_EQ(second->logit_cap, 30);
  EXPECT_EQ(second->windows[0], 4096);
  EXPECT_EQ(second->windows[1], 0);
  json["attn_logit_softcapping"] = nullptr;
  EXPECT_EQ(parsed(json)->score_cap, 0);
  json["model_type"] = "gemma3_text";
  json["sliding_window"] = 512;
  auto third = parsed(json);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(third->branch_norms && third->head_norms);
  EXPECT_EQ(third->windows[4], 512);
  EXPECT_EQ(third->windows[5], 0);
  EXPECT_EQ(third->window_rope->theta, 10000);
  json.erase("rope_theta");
  EXPECT_EQ(parsed(json)->rope.theta, 1e6);
  json["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 5e5}}},
                             {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 2e4}}}};
  EXPECT_EQ(parsed(json)->rope.kind, Rope::Kind::kLinear);
  EXPECT_EQ(parsed(json)->rope.theta, 5e5);
  EXPECT_EQ(parsed(json)->window_rope->theta, 2e4);
}

TEST(DecoderConfig, PartsOfPhi3) {
  base::Json json = llama();
  json["model_type"] = "phi3";
  json["partial_rotary_factor"] = 0.75;
  json["original_max_position_embeddings"] = 4096;
  json["sliding_window"] = 2047;
  json["rope_scaling"] = {{"type", "su"}, {"short_factor", std::vector<double>(24, 1.0)}, {"long_factor", std::vector<double>(24, 2.0)}};
  auto config = parsed(json);
  ASSERT_TRUE(config.ok()) << config.error().cause;
  EXPECT_TRUE(config->packed && !config->qkv_bias);
  EXPECT_EQ(config->rotary_dim, 48);
  EXPECT_EQ(config->windows[3], 2047);
  const auto near = inverse_frequencies(*config, config->rope, 4096), far = inverse_frequencies(*config, config->rope, 4097);
  ASSERT_EQ(near.size(), 24u);
  for (size_t i = 0; i < near.size(); ++i) EXPECT_EQ(near[i], far[i] * 2);
  EXPECT_NEAR(rope_scale(*config, config->rope), std::sqrt(1 + std::log(32) / std::log(4096)), 1e-12);
}

TEST(DecoderConfig, DynamicScalingBeginsBehindTheContext) {
  base::Json json = llama();
  json["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  auto config = parsed(json);
  ASSERT_TRUE(config.ok()) << config.error().cause;
  const auto near = inverse_frequencies(*config, config->rope, 131072), far = inverse_frequencies(*config, config->rope, 2 * 131072);
  EXPECT_EQ(near[1], frequencies_of(*config)[1]);
  EXPECT_NEAR(near[1] / far[1], std::pow(3, 2.0 / 62), 1e-5);  // theta grows by 3^(d / (d - 2))
}

TEST(DecoderConfig, WhatCannotBeUsedIsNamed) {
  auto cause = [](auto change) {
    base::Json json = llama();
    change(json);
    auto config = parsed(json);
    return config.ok() ? std::string("accepted") : config.error().cause;
  };
  EXPECT_EQ(cause([](auto& json) { json["model_type"] = "mamba"; }), "model_type \"mamba\" is not supported");
  EXPECT_EQ(cause([](auto& json) { json["hidden_act"] = "relu"; }), "hidden_act \"relu\" is not supported");
  EXPECT_EQ(cause([](auto& json) { json["quantization_config"] = {}; }), "its weights are quantized");
  EXPECT_EQ(cause([](auto& json) { json["num_key_value_heads"] = 5; }), "num_key_value_heads does not divide num_attention_heads");
  EXPECT_EQ(cause([](auto& json) { json["num_hidden_layers"] = 1 << 20; }), "num_hidden_layers is not a whole number from 1 to 4096");
  EXPECT_EQ(cause([](auto& json) { json.erase("vocab_size"); }), "vocab_size is missing");
  EXPECT_EQ(cause([](auto& json) { json["head_dim"] = 63; }), "head_dim is odd");
  EXPECT_EQ(cause([](auto& json) { json["rope_scaling"] = {{"rope_type", "spiral"}}; }), "rope_type \"spiral\" is not supported");
  EXPECT_EQ(cause([](auto& json) { json["rope_scaling"] = {{"rope_type", "longrope"}}; }), "short_factor is not a list of 32 numbers");
  EXPECT_EQ(cause([](auto& json) { json["partial_rotary_factor"] = 2; }), "partial_rotary_factor is out of range");
  EXPECT_EQ(cause([](auto& json) { json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 0}}; }),
            "a number of rope_scaling is out of range");
}

}  // namespace
}  // namespace phalanx::tune
