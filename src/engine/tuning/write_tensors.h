// Tensors as files of safetensors, written one after another: no second copy of a model is made.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"

namespace phalanx::engine::tuning {

struct TensorToWrite {
  std::string name;
  at::Tensor value;
  at::ScalarType type = at::kFloat;  // in the file: fp32, bf16 or fp16
};

// The file must not exist. It is whole and on the disk at the end (fsync of the file, not of its folder); after an Error a part of it may
// lie there.
base::Status write_tensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                           const std::map<std::string, std::string>& metadata, const BytesDone& progress = {});

// A whole model as Hugging Face's libraries read it: model.safetensors, or parts of at most `max_file_bytes` with their index. Parameters
// have the types they have in `base`, which is the folder they came from, opened. Adapters must have been merged.
base::Status write_model(Decoder& decoder, const TensorFiles& base, const std::string& folder, uint64_t max_file_bytes,
                         const BytesDone& progress = {});

}  // namespace phalanx::engine::tuning
