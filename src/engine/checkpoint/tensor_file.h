// Named tensors in a safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/record.h"

namespace engine::checkpoint {

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

// Writes a new file and fsyncs it. Tensors on a GPU are copied over one at a time.
base::Result<FileRecord> write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors);

// Reads a file whose size and hash must be `expected`; the tensors are on CPU and own their memory. Error: kConfig, naming
// the file and what differs.
base::Result<std::map<std::string, at::Tensor>> read_tensors(const std::string& path, const FileRecord& expected);

}  // namespace engine::checkpoint
