// Any bytes as the JSON files around a checkpoint: manifest, a rank's record, a model's index. What is accepted, written again, reads
// as the same; records that fit together give a layout without holes or overlaps.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/checkpoint/hf_index.h"
#include "engine/checkpoint/layout.h"
#include "engine/checkpoint/record.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;

void look_at_record(std::string_view text) {
  auto record = parse_shard_record(text);
  if (!record.ok()) {
    PHALANX_CHECK(!record.error().message.empty());
    return;
  }
  PHALANX_CHECK(record->rank < record->world);
  Layout layout;
  bool fits = true;
  for (const PieceRecord& piece : record->pieces) {
    PHALANX_CHECK(piece.begin >= 0 && piece.count >= 0 && piece.begin + piece.count <= elements(piece.tensor.shape));
    fits = fits && layout.add(piece, record->rank, 0).ok();
  }
  if (fits && layout.complete().ok())
    for (const auto& [name, extent] : layout.tensors()) {
      int64_t next = 0;
      for (const Run& run : extent.runs) {
        PHALANX_CHECK(run.begin == next);
        next += run.count;
      }
      PHALANX_CHECK(next == extent.count);
    }
  const std::string written = to_text(*record);
  auto again = parse_shard_record(written);
  PHALANX_CHECK(again.ok() && to_text(*again) == written);
}

void look_at_manifest(std::string_view text) {
  auto manifest = parse_manifest(text);
  if (!manifest.ok()) {
    PHALANX_CHECK(!manifest.error().message.empty());
    return;
  }
  for (const NamedFile& file : manifest->files) PHALANX_CHECK(file.name.find('/') == std::string::npos);
  const std::string written = to_text(*manifest);
  auto again = parse_manifest(written);
  PHALANX_CHECK(again.ok() && to_text(*again) == written);
}

void look_at_index(std::string_view text) {
  auto index = parse_model_index(text);
  if (!index.ok()) {
    PHALANX_CHECK(!index.error().message.empty());
    return;
  }
  for (const auto& [tensor, file] : index->weight_map) PHALANX_CHECK(file.find('/') == std::string::npos && file != "..");
  auto again = parse_model_index(to_text(*index));
  PHALANX_CHECK(again.ok() && again->weight_map.size() == index->weight_map.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  look_at_record(text);
  look_at_manifest(text);
  look_at_index(text);
  return 0;
}
