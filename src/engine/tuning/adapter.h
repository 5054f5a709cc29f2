// LoRA adapters of a Decoder, in PEFT's folders: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"
#include "engine/tuning/load_decoder.h"
#include "tune/adapter/adapter_config.h"

namespace phalanx::engine::tuning {

// Gives projections their adapters, and freezes everything else but the modules that are trained whole. A is drawn from U(±1/√in), in the
// order of the projections, B is 0. Error kConfig: no projection is a target, or a module to save is none, or has an adapter.
base::Status add_adapters(Decoder& decoder, const tune::AdapterConfig& config, uint64_t seed);
// What a model has to become before it can take such an adapter: PEFT trains a saved head or embedding apart from the other one. The
// second: what it has to become for the adapter in a folder, whose embedding may have more rows.
Changes changes_for(const tune::AdapterConfig& config);
base::Result<Changes> changes_for(const std::string& folder);
// The same with the weights of a folder. Error kConfig: its files cannot be used or do not fit.
base::Result<tune::AdapterConfig> read_adapter(Decoder& decoder, const std::string& folder);
// The tensor of a file that a parameter is written to.
std::string name_in_adapter(const std::string& parameter);
// Writes both files into a folder that exists. The weights, and those of saved modules, as fp32.
base::Status write_adapter(Decoder& decoder, const tune::AdapterConfig& config, const std::string& folder);
// The same of parameters by their names in the model, "model.layers.0.self_attn.q_proj.lora_A.weight".
base::Status write_adapter(const std::vector<NamedTensor>& parameters, const tune::AdapterConfig& config, const std::string& folder);
// Adds the adapters to the weights, in fp32, and takes them away. Saved modules stay.
void merge_adapters(Decoder& decoder);

}  // namespace phalanx::engine::tuning
