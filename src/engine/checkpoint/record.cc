#include "engine/checkpoint/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/safetensors.h"

namespace phalanx::engine::checkpoint {
namespace {

using base::Json;

constexpr std::string_view kManifestMagic = "phalanx-checkpoint", kShardMagic = "phalanx-shard";
constexpr size_t kMaxName = 4096;

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, std::move(why)); }

const Json* find(const Json& object, std::string_view key) {
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

base::Result<int64_t> number(const Json& object, const char* key, int64_t max) {
  auto value = base::get_int(object, key);
  if (!value || *value < 0 || *value > max) return bad(fmt::format("{} is missing or not a whole number from 0 to {}", key, max));
  return *value;
}

base::Result<std::string> text(const Json& object, const char* key, size_t max) {
  auto value = base::get_string(object, key);
  if (!value || value->empty() || value->size() > max) return bad(fmt::format("{} is missing or not a string of 1 to {} bytes", key, max));
  return *value;
}

base::Result<std::string> sha256(const Json& object) {
  TRY_ASSIGN(std::string value, text(object, "sha256", 64));
  if (value.size() != 64 || value.find_first_not_of("0123456789abcdef") != std::string::npos) return bad("sha256 is not a SHA-256");
  return value;
}

base::Result<Json> parse_object(std::string_view content, std::string_view magic) {
  TRY_ASSIGN(Json json, base::parse_json(content, kMaxRecordBytes));
  if (!json.is_object() || base::get_string(json, "magic") != magic) return bad(fmt::format("it is not a {} file", magic));
  auto version = base::get_int(json, "version");
  if (version != kVersion)
    return bad(version ? fmt::format("its version is {}; this program reads version {}", *version, kVersion) : "it has no version")
        .with_hint("use it with the program that wrote it, or start a new run in another folder");
  return json;
}

base::Result<Json> state_of(const Json& json) {
  const Json* state = find(json, "state");
  if (!state) return Json(Json::object());
  if (!state->is_object()) return bad("state is not an object");
  return *state;
}

base::Result<TensorRecord> tensor_of(const Json& json) {
  if (!json.is_object()) return bad("a tensor is not an object");
  TensorRecord tensor;
  TRY_ASSIGN(tensor.name, text(json, "name", kMaxName));
  const std::string quoted = base::quote(tensor.name);
  TRY_ASSIGN(tensor.dtype, text(json, "dtype", 16));
  if (dtype_bytes(tensor.dtype) == 0) return bad(fmt::format("tensor {} has an unknown dtype {}", quoted, base::quote(tensor.dtype)));
  const Json* shape = find(json, "shape");
  if (!shape || !shape->is_array() || shape->size() > kMaxDimensions)
    return bad(fmt::format("tensor {} has no shape of at most {} dimensions", quoted, kMaxDimensions));
  int64_t count = static_cast<int64_t>(dtype_bytes(tensor.dtype));
  for (const Json& size : *shape) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0 || (size.is_number_unsigned() && size.get<uint64_t>() > INT64_MAX))
      return bad(fmt::format("tensor {} has a size that is not a whole number", quoted));
    tensor.shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(count, std::max<int64_t>(tensor.shape.back(), 1), &count))
      return bad(fmt::format("tensor {} is too large", quoted));
  }
  return tensor;
}

Json json_of(const TensorRecord& tensor) { return {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}}; }

base::Result<PieceRecord> piece_of(const Json& json) {
  PieceRecord piece;
  TRY_ASSIGN(piece.tensor, tensor_of(json));
  const int64_t all = elements(piece.tensor.shape);
  TRY_ASSIGN(piece.begin, number(json, "begin", all));
  TRY_ASSIGN(piece.count, number(json, "count", all - piece.begin));
  return piece;
}

base::Result<const Json*> list(const Json& json, const char* key) {
  const Json* found = find(json, key);
  if (!found || !found->is_array()) return bad(fmt::format("{} is missing or not a list", key));
  return found;
}

// One item a line, so that a person can look at a file of thousands.
std::string lines(const std::vector<Json>& items) {
  std::string out = "[";
  for (const Json& item : items) out += (out.size() > 1 ? ",\n    " : "\n    ") + base::to_text(item);
  return out + (items.empty() ? "]" : "\n  ]");
}

std::string field(std::string_view key, const std::string& value) { return fmt::format(",\n  \"{}\": {}", key, value); }

std::string head(std::string_view magic) { return fmt::format("{{\n  \"magic\": \"{}\",\n  \"version\": {}", magic, kVersion); }

}  // namespace

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

std::string entry_name(std::string_view tensor, int64_t begin) { return fmt::format("{}@{}", tensor, begin); }
std::string shard_file(int rank, int world) { return fmt::format("shard-{:05}-of-{:05}.safetensors", rank, world); }
std::string record_file(int rank, int world) { return fmt::format("shard-{:05}-of-{:05}.json", rank, world); }

std::string to_text(const ShardRecord& record) {
  std::vector<Json> pieces;
  for (const PieceRecord& piece : record.pieces) {
    Json json = json_of(piece.tensor);
    json["begin"] = piece.begin;
    json["count"] = piece.count;
    pieces.push_back(std::move(json));
  }
  return head(kShardMagic) + field("save", base::to_text(Json(record.save))) + field("rank", fmt::to_string(record.rank)) +
         field("world", fmt::to_string(record.world)) + field("step", fmt::to_string(record.step)) +
         field("bytes", fmt::to_string(record.shard.bytes)) + field("sha256", base::to_text(Json(record.shard.sha256))) +
         field("pieces", lines(pieces)) + field("state", base::to_text(record.state)) + "\n}\n";
}

base::Result<ShardRecord> parse_shard_record(std::string_view content) {
  TRY_ASSIGN(Json json, parse_object(content, kShardMagic));
  ShardRecord record;
  TRY_ASSIGN(record.save, text(json, "save", 256));
  TRY_ASSIGN(int64_t world, number(json, "world", kMaxWorld));
  if (world == 0) return bad("world is 0");
  TRY_ASSIGN(int64_t rank, number(json, "rank", world - 1));
  record.rank = static_cast<int>(rank);
  record.world = static_cast<int>(world);
  TRY_ASSIGN(record.step, number(json, "step", INT64_MAX));
  TRY_ASSIGN(int64_t bytes, number(json, "bytes", INT64_MAX));
  record.shard.bytes = static_cast<uint64_t>(bytes);
  TRY_ASSIGN(record.shard.sha256, sha256(json));
  TRY_ASSIGN(const Json* pieces, list(json, "pieces"));
  record.pieces.reserve(pieces->size());
  for (const Json& item : *pieces) {
    TRY_ASSIGN(PieceRecord piece, piece_of(item));
    record.pieces.push_back(std::move(piece));
  }
  TRY_ASSIGN(record.state, state_of(json));
  return record;
}

std::string to_text(const Manifest& manifest) {
  std::vector<Json> files, tensors;
  for (const NamedFile& one : manifest.files) files.push_back({{"name", one.name}, {"bytes", one.file.bytes}, {"sha256", one.file.sha256}});
  for (const TensorRecord& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  return head(kManifestMagic) + field("save", base::to_text(Json(manifest.save))) + field("step", fmt::to_string(manifest.step)) +
         field("world", fmt::to_string(manifest.world)) + field("files", lines(files)) + field("tensors", lines(tensors)) +
         field("state", base::to_text(manifest.state)) + "\n}\n";
}

base::Result<Manifest> parse_manifest(std::string_view content) {
  TRY_ASSIGN(Json json, parse_object(content, kManifestMagic));
  Manifest manifest;
  TRY_ASSIGN(manifest.save, text(json, "save", 256));
  TRY_ASSIGN(manifest.step, number(json, "step", INT64_MAX));
  TRY_ASSIGN(int64_t world, number(json, "world", kMaxWorld));
  manifest.world = static_cast<int>(world);
  TRY_ASSIGN(const Json* files, list(json, "files"));
  if (world == 0 || files->size() != 2 * static_cast<size_t>(world))
    return bad(fmt::format("it names {} files; {} ranks write {}", files->size(), world, 2 * world));
  for (const Json& item : *files) {
    const int place = static_cast<int>(manifest.files.size());
    const std::string expected = place % 2 == 0 ? shard_file(place / 2, manifest.world) : record_file(place / 2, manifest.world);
    NamedFile file;
    if (!item.is_object()) return bad("a file is not an object");
    TRY_ASSIGN(file.name, text(item, "name", 256));
    if (file.name != expected) return bad(fmt::format("it names a file {} instead of {}", base::quote(file.name), expected));
    TRY_ASSIGN(int64_t bytes, number(item, "bytes", INT64_MAX));
    file.file.bytes = static_cast<uint64_t>(bytes);
    TRY_ASSIGN(file.file.sha256, sha256(item));
    manifest.files.push_back(std::move(file));
  }
  TRY_ASSIGN(const Json* tensors, list(json, "tensors"));
  for (const Json& item : *tensors) {
    TRY_ASSIGN(TensorRecord tensor, tensor_of(item));
    manifest.tensors.push_back(std::move(tensor));
  }
  TRY_ASSIGN(manifest.state, state_of(json));
  return manifest;
}

}  // namespace phalanx::engine::checkpoint
