// The JSON files of a checkpoint, without torch: what one rank wrote, and the manifest that speaks for all.
// docs/formats/checkpoint.md describes them. Parsing accepts any bytes and gives a record or an Error (kConfig).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace phalanx::engine::checkpoint {

inline constexpr int64_t kVersion = 2;
inline constexpr size_t kMaxRecordBytes = 256 << 20;
inline constexpr int kMaxWorld = 1 << 20;

struct TensorRecord {
  std::string name;
  std::string dtype;           // as safetensors names it
  std::vector<int64_t> shape;  // of the whole tensor
};
int64_t elements(const std::vector<int64_t>& shape);  // of a shape from one of the parsers here: it cannot overflow

// Elements [begin, begin + count) of a flattened tensor. The shard has it as a 1-D tensor of the name entry_name().
struct PieceRecord {
  TensorRecord tensor;
  int64_t begin = 0;
  int64_t count = 0;
};
std::string entry_name(std::string_view tensor, int64_t begin);  // "model.embed.weight@0"

struct FileRecord {
  uint64_t bytes = 0;
  std::string sha256;  // of the whole file
};

// One rank's part: "shard-00003-of-00008.json". `save` is equal in all records of one save and in no other's.
struct ShardRecord {
  std::string save;
  int rank = 0, world = 0;
  int64_t step = 0;
  FileRecord shard;
  std::vector<PieceRecord> pieces;
  base::Json state = base::Json::object();  // this rank's own: place in the data, random numbers
};
std::string to_text(const ShardRecord& record);
base::Result<ShardRecord> parse_shard_record(std::string_view text);

struct NamedFile {
  std::string name;  // without a path
  FileRecord file;
};

struct Manifest {
  std::string save;
  int64_t step = 0;
  int world = 0;
  std::vector<NamedFile> files;  // of rank 0: shard, record; of rank 1 …
  std::vector<TensorRecord> tensors;
  base::Json state = base::Json::object();  // of all ranks: config, scaler, schedule
};
std::string to_text(const Manifest& manifest);
// Every file must have the name it has to have at its place (shard_file, record_file), so none leads out of the folder.
base::Result<Manifest> parse_manifest(std::string_view text);

std::string shard_file(int rank, int world);   // "shard-00003-of-00008.safetensors"
std::string record_file(int rank, int world);  // "shard-00003-of-00008.json"

}  // namespace phalanx::engine::checkpoint
