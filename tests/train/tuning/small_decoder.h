// A small decoder with fixed values.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "base/check.h"
#include "engine/tuning/decoder/decoder.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::testing_models {

inline engine::tuning::Decoder small_decoder(int64_t layers = 2) {
  auto config = tune::parse_decoder_config(R"({"model_type": "llama", "vocab_size": 13, "hidden_size": 8, "intermediate_size": 12,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1})");
  PHALANX_CHECK(config.ok());
  config->layers = layers;
  config->windows.resize(static_cast<size_t>(layers));
  engine::tuning::Decoder decoder(*config, true);
  at::NoGradGuard no_grad;
  double place = 0;
  for (at::Tensor& value : decoder->parameters()) {
    at::Tensor angles = (at::arange(value.numel(), at::kFloat) * 1.3 + place++).view(value.sizes());
    value.copy_(value.dim() > 1 ? angles.sin() * 0.4 : angles.sin() * 0.1 + 1);
    value.set_requires_grad(false);
  }
  return decoder;
}

}  // namespace phalanx::testing_models
