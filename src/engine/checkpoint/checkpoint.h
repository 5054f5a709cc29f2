// Checkpoints of version 1, which one rank writes (saver.h writes version 2): one folder each, which is either complete or not there.
// docs/formats/checkpoint.md describes the files.
//
//   <folder>/step-00000200/  model.safetensors  optimizer.safetensors  manifest.json  DONE
//
// A checkpoint is written into <folder>/.saving-…, every file and the folder fsynced, then renamed, and only then gets its
// DONE mark, which holds the manifest's hash; the manifest holds the files' sizes and hashes. So after a crash or a power
// cut at any moment, latest() finds the last complete one, and load() proves that it is what was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/sharded.h"
#include "engine/checkpoint/tensor_file.h"

namespace engine::checkpoint {

struct Snapshot {
  int64_t step = 0;  // optimizer steps done
  base::Json about;  // an object for the manifest: what made it
  std::vector<NamedTensor> model;
  std::vector<NamedTensor> optimizer;
};

struct Loaded {
  int64_t step = 0;
  base::Json about;
  std::map<std::string, at::Tensor> model;
  std::map<std::string, at::Tensor> optimizer;
};

// One process at a time per folder. Replaces a checkpoint of the same step; afterwards removes all but the newest `keep`
// (0 keeps all) and what earlier crashes left. Returns the checkpoint's path.
base::Result<std::string> save(const std::string& folder, const Snapshot& snapshot, int64_t keep, const StageHook& stage = {});

// Reads and verifies one. Error: kConfig, naming the file and what is wrong with it.
base::Result<Loaded> load(const std::string& path);

}  // namespace engine::checkpoint
