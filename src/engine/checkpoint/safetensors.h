// The safetensors file format, without torch: an 8-byte little-endian length N, N bytes of JSON, then the tensors' bytes.
//   {"__metadata__":{"format":"pt"},"embed.weight":{"dtype":"F32","shape":[256,128],"data_offsets":[0,131072]}, …}
// Offsets count from the end of the JSON; the tensors fill the rest of the file without gaps or overlaps, little-endian,
// row-major. Source: github.com/huggingface/safetensors (safetensors/src/tensor.rs).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::engine::checkpoint {

struct TensorInfo {
  std::string name;
  std::string dtype;  // "F32", "BF16", "I64", …
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes, from the start of the data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // of the data section in the file
};

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // the reference implementation's limit
inline constexpr size_t kMaxDimensions = 64;

// Bytes of one element, 0 for a dtype we do not know.
uint64_t dtype_bytes(std::string_view dtype);

// `file` is the whole file. Every property named above is checked, duplicate names too; any bytes give a header or an
// Error (kConfig), and with a header every [begin, end) lies inside the file.
base::Result<SafetensorsHeader> parse_safetensors(std::string_view file);
// The same of a file of `file_bytes` of which only the first bytes are here: at least its header, whose length (with the 8
// bytes before it) head_length tells from the first 8 bytes.
base::Result<SafetensorsHeader> parse_safetensors_head(std::string_view head, uint64_t file_bytes);
base::Result<uint64_t> head_length(std::string_view first_bytes, uint64_t file_bytes);

// The first bytes of a file holding these tensors in this order; their begin and end are set. The data section starts on
// a multiple of 8 bytes.
std::string make_safetensors_header(std::vector<TensorInfo>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace phalanx::engine::checkpoint
