// Any bytes as config.json and as adapter_config.json: sizes within their limits and finite frequencies, or an error.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tune/adapter/adapter_config.h"
#include "tune/decoder/decoder_config.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto adapter = tune::parse_adapter_config(bytes); adapter.ok()) {
    const auto shape = tune::adapter_of(*adapter, "model.layers.0.self_attn.q_proj");
    if (shape) PHALANX_CHECK(shape->rank >= 1 && std::isfinite(shape->scale));
    PHALANX_CHECK(tune::parse_adapter_config(tune::to_text(*adapter)).ok());
  }
  auto config = tune::parse_decoder_config(bytes);
  if (!config.ok()) {
    PHALANX_CHECK(!config.error().message.empty());
    return 0;
  }
  PHALANX_CHECK(config->layers == static_cast<int64_t>(config->windows.size()));
  if (config->head_dim > 1 << 12) return 0;
  for (const tune::Rope& rope : {config->rope, config->window_rope.value_or(config->rope)}) {
    PHALANX_CHECK(std::isfinite(tune::rope_scale(*config, rope)));
    for (int64_t length : {int64_t{1}, config->positions + 1})
      for (float one : tune::inverse_frequencies(*config, rope, length)) PHALANX_CHECK(std::isfinite(one));
  }
  return 0;
}
