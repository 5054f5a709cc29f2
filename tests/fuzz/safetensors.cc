// Any bytes as a safetensors file. What is accepted lies inside the file, and written again reads as the same.
#include "engine/checkpoint/safetensors.h"

#include <cstdint>
#include <string_view>

#include "base/check.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace engine::checkpoint;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  auto parsed = parse_safetensors(file);
  if (!parsed.ok()) {
    PHALANX_CHECK(!parsed.error().cause.empty());
    return 0;
  }
  uint64_t place = 0;
  for (const TensorInfo& tensor : parsed->tensors) {
    PHALANX_CHECK(tensor.begin == place && tensor.end >= tensor.begin);
    place = tensor.end;
    uint64_t bytes = dtype_bytes(tensor.dtype);
    for (int64_t length : tensor.shape) bytes *= static_cast<uint64_t>(length);
    PHALANX_CHECK(bytes == tensor.end - tensor.begin);
  }
  PHALANX_CHECK(parsed->data_start + place == size);

  std::vector<TensorInfo> tensors = parsed->tensors;
  const std::string header = make_safetensors_header(tensors, parsed->metadata);
  auto again = parse_safetensors(header + std::string(file.substr(parsed->data_start)));
  PHALANX_CHECK(again.ok() && again->tensors.size() == tensors.size() && again->metadata == parsed->metadata);
  for (size_t i = 0; i < tensors.size(); ++i)
    PHALANX_CHECK(again->tensors[i].name == parsed->tensors[i].name && again->tensors[i].end == tensors[i].end);
  return 0;
}
