#include "tune/decoder/decoder_config.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace phalanx::tune {
namespace {

base::Json llama() {
  return {{"model_type", "llama"},       {"vocab_size", 128256},      {"hidden_size", 2048},      {"intermediate_size", 8192},
          {"num_hidden_layers", 16},     {"num_attention_heads", 32}, {"num_key_value_heads", 8}, {"head_dim", 64},
          {"rms_norm_eps", 1e-5},        {"rope_theta", 500000.0},    {"hidden_act", "silu"},     {"max_position_embeddings", 131072},
          {"tie_word_embeddings", true}, {"torch_dtype", "bfloat16"}};
}

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
  EXPECT_EQ(inverse_frequencies(*one), inverse_frequencies(*two));
  EXPECT_EQ(one->rope.original_positions, 8192);
  // The fastest pair is untouched, the slowest is slowed 32 times.
  const std::vector<float> frequencies = inverse_frequencies(*one);
  EXPECT_EQ(frequencies.front(), 1.0f);
  older.erase("rope_scaling");
  EXPECT_NEAR(frequencies.back() * 32, inverse_frequencies(*parsed(older)).back(), 1e-12);
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
  EXPECT_EQ(cause([](auto& json) { json["rope_scaling"] = {{"rope_type", "longrope"}}; }), "rope_type \"longrope\" is not supported");
  EXPECT_EQ(cause([](auto& json) { json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 0}}; }),
            "a number of rope_scaling is out of range");
}

}  // namespace
}  // namespace phalanx::tune
