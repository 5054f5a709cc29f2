// One checkpoint of many shards as the safetensors files everybody reads: the model's tensors alone, whole, under their own names.
//
//   <folder>/model.safetensors                                        if it fits into one file, else
//   <folder>/model-00001-of-00003.safetensors …  and  model.safetensors.index.json
//   <folder>/config.json, phalanx_gpt.py                              if the caller gives them (engine/train/model_files.h)
//
// Streams: memory is a few MiB, whatever the size of the model. Needs no other rank and no collective, so it can run on any machine that
// sees the checkpoint, or in a thread while training goes on. The folder appears whole, by a rename: a kill leaves
// ".merging-…" beside it, which the next merge of the same folder removes.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/record.h"

namespace phalanx::engine::checkpoint {

class Interrupt;
class Reader;

// A text that lies beside the tensors of a merged model, such as its config.json.
struct SmallFile {
  std::string name;  // kConfigFile or kPythonFile: only these are replaced with the model
  std::string text;
};
inline constexpr std::string_view kConfigFile = "config.json", kPythonFile = "phalanx_gpt.py";

struct MergeOptions {
  std::string checkpoint;                   // a step folder
  std::string folder;                       // must not exist, or be empty, unless `replace`
  std::string dtype = {};                   // "BF16", "F16", "F32" for floating-point tensors; "" as stored
  uint64_t max_file_bytes = 5'000'000'000;  // of tensors; a larger tensor has a file of its own
  bool replace = false;                     // an older merged model in `folder`
  // What lies beside the tensors, made from the opened checkpoint; an error ends the merge.
  std::function<base::Result<std::vector<SmallFile>>(const Reader&)> beside = {};
  std::function<void(uint64_t done, uint64_t all)> progress = {};  // bytes of the output, now and then
  std::function<void(std::string_view stage)> stage = {};          // for tests: "verify", "file", "index", "rename"; may throw
};

struct Merged {
  std::string folder;
  std::vector<NamedFile> files;  // the model's, without the index
  uint64_t bytes = 0;            // of all tensors
  size_t tensors = 0;
  bool described = false;  // config.json lies beside them
};

// Error: the checkpoint is damaged (kConfig, every file is verified first); the folder is taken (kUsage); the disk is too small, found
// before anything is written, or full (kUnfit).
base::Result<Merged> merge(const MergeOptions& options, const Interrupt& interrupt);

// The same in a thread of its own, which holds the checkpoint open from the start: it may be removed meanwhile. The future's
// destructor waits; raise the interrupt to make that short.
std::future<base::Result<Merged>> merge_in_background(MergeOptions options, const Interrupt& interrupt);

}  // namespace phalanx::engine::checkpoint
