// LoRA adapters of a Decoder, in PEFT's folders: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"
#include "tune/adapter/adapter_config.h"

namespace phalanx::engine::tuning {

// Gives projections their adapters and freezes everything else. A is drawn from U(±1/√in), in the order of the projections, B is 0. Error
// kConfig: no projection is a target.
base::Status add_adapters(Decoder& decoder, const tune::AdapterConfig& config, uint64_t seed);
// The same with the weights of a folder. Error kConfig: its files cannot be used or do not fit.
base::Result<tune::AdapterConfig> read_adapter(Decoder& decoder, const std::string& folder);
// Writes both files into a folder that exists. The weights as fp32.
base::Status write_adapter(Decoder& decoder, const tune::AdapterConfig& config, const std::string& folder);
// The same of parameters by their names in the model, "model.layers.0.self_attn.q_proj.lora_A.weight".
base::Status write_adapter(const std::vector<NamedTensor>& parameters, const tune::AdapterConfig& config, const std::string& folder);
// Adds the adapters to the weights, in fp32, and takes them away.
void merge_adapters(Decoder& decoder);

}  // namespace phalanx::engine::tuning
