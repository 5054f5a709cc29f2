// Reads checkpoints of any number of ranks, by ranges of elements: how many ranks wrote a tensor, and how it is cut for
// those that read it, is arithmetic.
//
// Nothing in a checkpoint is believed: DONE vouches for the manifest, the manifest for every file by size and SHA-256, and a file is
// hashed before its first element is used. File names are fixed by rank and world, so none leads out of the folder; symbolic links are
// refused. Elements that no file holds, or two, make a checkpoint damaged when it is opened.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/checkpoint/layout.h"

namespace phalanx::engine::checkpoint {

class CheckedFile;

class Reader {
 public:
  // Error: the file, and where it matters the tensor and what is wrong with it. kConfig: it is damaged; kUnfit: the file system failed.
  static base::Result<Reader> open(const std::string& path);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const std::string& path() const { return path_; }
  int64_t step() const { return step_; }
  int world() const { return world_; }  // ranks that wrote it
  uint64_t bytes() const;               // of all its files but the manifest
  const base::Json& common_state() const { return common_state_; }
  const base::Json& rank_state(int rank) const { return rank_states_.at(static_cast<size_t>(rank)); }  // below world()
  // By name with its kind: "model.embed.weight", "exp_avg.embed.weight".
  const std::map<std::string, Extent, std::less<>>& tensors() const { return layout_.tensors(); }

  // Hashes the files part, part + parts, part + 2·parts … in up to `threads` threads, those that were not hashed yet. So ranks that
  // read one checkpoint can share the work and then tell each other; trust() says that others have hashed the rest.
  base::Status verify(int threads = 1, int part = 0, int parts = 1);
  void trust();

  // Elements [begin, end) of a flattened tensor into `out`: as many elements, any shape, device and dtype (converted). A file that has
  // not been hashed is hashed first.
  base::Status read(std::string_view name, int64_t begin, int64_t end, at::Tensor out);
  // The same as raw bytes of the stored dtype.
  base::Status read_bytes(std::string_view name, int64_t begin, int64_t end, std::span<char> out);

 private:
  Reader();
  base::Status open_files(Manifest manifest);
  base::Status add_shard(const NamedFile& shard, const NamedFile& record, int rank, const Manifest& manifest);
  base::Result<const Extent*> find(std::string_view name, int64_t begin, int64_t end) const;

  std::string path_;
  int64_t step_ = 0;
  int world_ = 1;
  base::Json common_state_;
  std::vector<base::Json> rank_states_;
  std::vector<std::unique_ptr<CheckedFile>> files_;
  Layout layout_;
};

// The newest checkpoint of a folder that can be read in full, and those that were passed over with the reason.
struct Skipped {
  std::string path;
  base::Error error;
};
struct Readable {
  std::unique_ptr<Reader> reader;  // null: the folder has none
  std::vector<Skipped> skipped;    // newest first
};
// Hashes every file in `threads` threads. Error (kUnfit): the folder or a checkpoint newer than all that are known to be whole could not be
// read, which says nothing about its content. Passing it over would lose the work since the one before.
base::Result<Readable> newest_readable(const std::string& folder, int threads = 1);

}  // namespace phalanx::engine::checkpoint
