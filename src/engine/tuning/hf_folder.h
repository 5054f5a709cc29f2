// A model folder as Hugging Face's libraries write it: config.json, and model.safetensors or its parts with their index. Tensors are read
// by name, one at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/safetensors.h"

namespace phalanx::engine::tuning {

class TensorFiles {
 public:
  // One file of safetensors. Only its header is read.
  static base::Result<TensorFiles> open_file(const std::string& path);
  // model.safetensors, or the files of model.safetensors.index.json. Error kConfig: none of them, a file that is malformed or cut short, or
  // an index that does not agree with its files.
  static base::Result<TensorFiles> open_folder(const std::string& folder);

  bool has(const std::string& name) const { return places_.contains(name); }
  std::vector<std::string> names() const;  // sorted
  const std::vector<int64_t>& shape(const std::string& name) const { return places_.at(name).info.shape; }
  at::ScalarType type(const std::string& name) const;                               // fp32 where the file has one that cannot be read
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of the last file
  // In the file's type: F32, BF16, F16. Error kConfig: of another type, or the file changed.
  base::Result<at::Tensor> read(const std::string& name) const;
  // The same without a copy: the file's own pages, which all processes of a host share, and which nobody may write to. The file must stay
  // as it is for as long as the tensor lives. Where the tensor does not lie at a multiple of its type's size it is read.
  base::Result<at::Tensor> map(const std::string& name) const;

 private:
  struct Place {
    std::string file;
    uint64_t data_start = 0;
    checkpoint::TensorInfo info;
  };
  base::Status add(const std::string& path);
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> metadata_;
};

using BytesDone = std::function<void(uint64_t done, uint64_t all)>;

// Copies the file's tensors into these parameters, converted to their types. Names that only the file has are unexpected, but for
// `ignored` ones and rotary tables of old files. Error kConfig: one error that lists all missing, unexpected and mis-shaped tensors.
struct NamedTensor {
  std::string name;
  at::Tensor value;
};
struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};
// That error, if they do not fit; nothing is read.
base::Status compare_tensors(const TensorFiles& files, const std::vector<NamedShape>& wanted, const std::vector<std::string>& ignored);
base::Status load_tensors(const TensorFiles& files, const std::vector<NamedTensor>& parameters, const std::vector<std::string>& ignored,
                          const BytesDone& progress = {});

}  // namespace phalanx::engine::tuning
