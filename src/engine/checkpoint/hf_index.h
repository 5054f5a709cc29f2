// The index of a model in several safetensors files, as Hugging Face's libraries read it: "model.safetensors.index.json". Pure.
//   {"metadata":{"total_size":512},"weight_map":{"a.weight":"model-00001-of-00002.safetensors", …}}
// Source: huggingface/transformers src/transformers/modeling_utils.py, huggingface_hub src/huggingface_hub/serialization/_base.py.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::engine::checkpoint {

inline constexpr std::string_view kOneModelFile = "model.safetensors", kIndexFile = "model.safetensors.index.json";

struct ModelIndex {
  uint64_t total_size = 0;                        // bytes of all tensors
  std::map<std::string, std::string> weight_map;  // tensor → file, a plain name
};

std::string model_file(size_t number, size_t count);  // (1, 2): "model-00001-of-00002.safetensors"; (1, 1): "model.safetensors"
std::string to_text(const ModelIndex& index);
// Any bytes. Error (kConfig): not such an index, or a file name that leads out of the folder.
base::Result<ModelIndex> parse_model_index(std::string_view text);

// Which tensors share a file: as many as fit into max_bytes, in the given order; a larger one has a file of its own.
// The result holds the index of the first tensor of every file.
std::vector<size_t> split_by_size(const std::vector<uint64_t>& tensor_bytes, uint64_t max_bytes);

}  // namespace phalanx::engine::checkpoint
