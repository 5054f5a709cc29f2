#include "engine/checkpoint/reader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/checked_file.h"
#include "engine/checkpoint/dtypes.h"
#include "engine/checkpoint/folder.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, std::move(why)); }

// nullopt: it does not exist.
base::Result<std::optional<std::string>> read_file(const std::string& path, size_t max_bytes) {
  auto text = os::read_if_present(path, max_bytes);
  if (!text.ok()) return cannot_tell(std::move(text).error());
  return std::move(*text);
}

// The manifest's text, if DONE vouches for it.
base::Result<std::string> vouched_manifest(const std::string& path) {
  auto folder = os::is_present_folder(path);
  if (!folder.ok()) return cannot_tell(std::move(folder).error());
  if (!*folder) return bad("no such folder");
  TRY_ASSIGN(const std::optional<std::string> done, read_file(path + "/" + kDoneFile, 4096));
  if (!done) return bad("it has no DONE mark, so it was never completed");
  TRY_ASSIGN(std::optional<std::string> manifest, read_file(path + "/" + kManifestFile, kMaxRecordBytes));
  if (!manifest) return bad("it has no manifest.json");
  if (base::trim(*done) != base::sha256_hex(*manifest)) return bad("its manifest.json does not match its DONE mark");
  return std::move(*manifest);
}

// An Error about the checkpoint as a whole: kUnfit if the file system failed, so that nobody knows whether it is damaged; else kConfig.
base::Error about(const std::string& path, base::Error error) {
  if (error.kind != base::ErrorKind::kUnfit) error.kind = base::ErrorKind::kConfig;
  const std::string message = fmt::format("cannot use the checkpoint {}", base::quote(path, 400));
  if (error.cause.empty()) error.cause = std::exchange(error.message, message);
  else error.context.push_back(fmt::format("opening the checkpoint {}", base::quote(path, 400)));
  return error;
}

}  // namespace

Reader::Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

base::Result<Reader> Reader::open(const std::string& path) {
  Reader reader;
  reader.path_ = path;
  auto opened = [&]() -> base::Status {
    TRY_ASSIGN(std::string text, vouched_manifest(path));
    TRY_ASSIGN(Manifest manifest, parse_manifest(text));
    return reader.open_files(std::move(manifest));
  }();
  if (!opened.ok()) return about(path, std::move(opened).error());
  return reader;
}

base::Status Reader::open_files(Manifest manifest) {
  step_ = manifest.step;
  world_ = manifest.world;
  common_state_ = std::move(manifest.state);
  for (int rank = 0; rank < world_; ++rank)
    TRY(add_shard(manifest.files[static_cast<size_t>(2 * rank)], manifest.files[static_cast<size_t>(2 * rank + 1)], rank, manifest));
  TRY(layout_.complete());
  for (const TensorRecord& tensor : manifest.tensors) {
    auto found = tensors().find(tensor.name);
    if (found == tensors().end()) return bad(fmt::format("no shard contains tensor {} of its manifest", base::quote(tensor.name)));
    if (found->second.dtype != tensor.dtype || found->second.shape != tensor.shape)
      return bad(fmt::format("the shape or dtype of tensor {} differs between manifest and shards", base::quote(tensor.name)));
  }
  if (manifest.tensors.size() != tensors().size())
    return bad(fmt::format("its manifest has {} tensors, its shards {}", manifest.tensors.size(), tensors().size()));
  return base::ok();
}

base::Status Reader::add_shard(const NamedFile& shard, const NamedFile& record_file, int rank, const Manifest& manifest) {
  CheckedFile record_on_disk(path_ + "/" + record_file.name, record_file.file);
  TRY(record_on_disk.open());
  TRY_ASSIGN(std::string text, record_on_disk.read_all(kMaxRecordBytes));
  auto record = parse_shard_record(text);
  if (!record.ok()) return record_on_disk.damaged(record.error().message);
  if (record->rank != rank || record->world != manifest.world || record->step != manifest.step || record->save != manifest.save)
    return record_on_disk.damaged("it belongs to another rank or another save");
  if (record->shard.bytes != shard.file.bytes || record->shard.sha256 != shard.file.sha256)
    return record_on_disk.damaged("its shard differs from the one in the manifest");

  auto file = std::make_unique<CheckedFile>(path_ + "/" + shard.name, shard.file);
  TRY(file->open());
  TRY_ASSIGN(SafetensorsHeader header, file->read_header());
  std::unordered_map<std::string_view, const TensorInfo*> entries;
  for (const TensorInfo& one : header.tensors) entries.emplace(one.name, &one);
  for (const PieceRecord& piece : record->pieces) {
    const std::string name = entry_name(piece.tensor.name, piece.begin);
    auto entry = entries.find(name);
    if (entry == entries.end()) return file->damaged(fmt::format("it has no entry {}", base::quote(name)));
    if (entry->second->dtype != piece.tensor.dtype || entry->second->shape != std::vector<int64_t>{piece.count})
      return file->damaged(fmt::format("its entry {} is not the {} elements of {} that its record names", base::quote(name), piece.count,
                                       piece.tensor.dtype));
    TRY(layout_.add(piece, rank, header.data_start + entry->second->begin));
  }
  if (entries.size() != record->pieces.size())
    return file->damaged(fmt::format("it has {} entries; its record names {}", entries.size(), record->pieces.size()));
  files_.push_back(std::move(file));
  rank_states_.push_back(std::move(record->state));
  return base::ok();
}

uint64_t Reader::bytes() const {
  uint64_t sum = 0;
  for (const auto& file : files_) sum += file->bytes();
  return sum;
}

base::Status Reader::verify(int threads, int part, int parts) {
  std::vector<CheckedFile*> mine;
  for (size_t i = static_cast<size_t>(part); i < files_.size(); i += static_cast<size_t>(parts)) mine.push_back(files_[i].get());
  std::vector<base::Status> results(mine.size(), base::ok());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < mine.size();) results[i] = mine[i]->verify();
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads && static_cast<size_t>(i) < mine.size(); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (base::Status& result : results)
    if (!result.ok()) return about(path_, std::move(result).error());
  return base::ok();
}

void Reader::trust() {
  for (const auto& file : files_) file->trust();
}

base::Result<const Extent*> Reader::find(std::string_view name, int64_t begin, int64_t end) const {
  auto found = tensors().find(name);
  if (found == tensors().end()) return about(path_, bad(fmt::format("it has no tensor {}", base::quote(name))));
  if (begin < 0 || begin > end || end > found->second.count)
    return about(path_, bad(fmt::format("tensor {} has {} elements, not {} to {}", base::quote(name), found->second.count, begin, end)));
  return &found->second;
}

base::Status Reader::read_bytes(std::string_view name, int64_t begin, int64_t end, std::span<char> out) {
  TRY_ASSIGN(const Extent* extent, find(name, begin, end));
  const auto size = static_cast<int64_t>(dtype_bytes(extent->dtype));
  PHALANX_CHECK(out.size() == static_cast<size_t>((end - begin) * size));
  // The first run that ends behind `begin`.
  auto run = std::partition_point(extent->runs.begin(), extent->runs.end(), [&](const Run& r) { return r.begin + r.count <= begin; });
  for (; run != extent->runs.end() && run->begin < end; ++run) {
    const int64_t from = std::max(begin, run->begin), to = std::min(end, run->begin + run->count);
    CheckedFile& file = *files_[static_cast<size_t>(run->file)];
    base::Status status = file.verify();
    if (status.ok())
      status = file.read(run->offset + static_cast<uint64_t>((from - run->begin) * size),
                         out.subspan(static_cast<size_t>((from - begin) * size), static_cast<size_t>((to - from) * size)));
    if (!status.ok())
      return std::move(status.error())
          .within(fmt::format("reading elements {} to {} of tensor {} (byte {})", from, to, base::quote(name), run->offset));
  }
  return base::ok();
}

base::Status Reader::read(std::string_view name, int64_t begin, int64_t end, at::Tensor out) {
  at::NoGradGuard no_grad;
  TRY_ASSIGN(const Extent* extent, find(name, begin, end));
  auto type = scalar_type(extent->dtype);
  if (!type)
    return about(path_, bad(fmt::format("tensor {} has dtype {}, which libtorch does not support", base::quote(name), extent->dtype)));
  PHALANX_CHECK(out.numel() == end - begin);
  const bool direct = out.is_cpu() && out.is_contiguous() && out.scalar_type() == *type;
  at::Tensor stored = direct ? out : at::empty({end - begin}, at::TensorOptions().dtype(*type));
  TRY(read_bytes(name, begin, end, {static_cast<char*>(stored.data_ptr()), stored.nbytes()}));
  if (!direct) out.copy_(stored.view(out.sizes()));
  return base::ok();
}

base::Result<Readable> newest_readable(const std::string& folder, int threads) {
  Readable result;
  TRY_ASSIGN(const std::vector<std::string> all, list(folder));
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    auto reader = Reader::open(*path);
    base::Status verified = reader.ok() ? reader->verify(threads) : base::Status(std::move(reader).error());
    if (verified.ok()) {
      result.reader = std::make_unique<Reader>(std::move(*reader));
      return result;
    }
    if (verified.error().kind == base::ErrorKind::kUnfit) {
      base::Error unknown = std::move(verified).error();
      unknown.hint =
          fmt::format("restart once the file system works; if it cannot be repaired, move {} away to use the previous checkpoint", *path);
      return unknown;
    }
    result.skipped.push_back({*path, std::move(verified).error()});
  }
  return result;
}

}  // namespace phalanx::engine::checkpoint
