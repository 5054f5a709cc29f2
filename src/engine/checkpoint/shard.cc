// A rank's part of a checkpoint: the shard, then the record that vouches for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/sha256.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/dtypes.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/sharded.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

constexpr size_t kChunk = 1 << 20;  // hashed while it is in the cache, then written

void reach(const StageHook& hook, std::string_view stage) {
  if (hook) hook(stage);
}

base::Result<std::vector<PieceRecord>> describe(const std::vector<Piece>& pieces) {
  std::vector<PieceRecord> records;
  for (const Piece& piece : pieces) {
    auto wrong = [&](std::string_view what) {
      return base::fail(base::ErrorKind::kInternal, fmt::format("piece of tensor {} {}", base::quote(piece.name), what));
    };
    TRY_ASSIGN(std::string dtype, dtype_name(piece.data.scalar_type()));
    const int64_t all = elements(piece.shape), count = piece.data.numel();
    if (piece.name.empty() || piece.begin < 0 || count > all - piece.begin) return wrong("does not lie in its tensor");
    if (piece.data.dim() != 1 || !piece.data.is_contiguous() || !piece.data.is_cpu()) return wrong("is not flat, contiguous and on CPU");
    if (count == 0 && all != 0) continue;
    records.push_back({{piece.name, std::move(dtype), piece.shape}, piece.begin, count});
  }
  return records;
}

// Writes the shard under a temporary name, fsyncs it and gives it its own.
class ShardWriter {
 public:
  ShardWriter(std::string path, const Interrupt& interrupt) : path_(std::move(path)), temporary_(path_ + ".tmp"), interrupt_(interrupt) {}

  base::Status open(uint64_t expected_bytes) {
    fd_ = os::Fd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd_.valid()) return io_error("create", temporary_, errno);
    // A disk that is too full says so now, not after minutes. Not every file system can reserve.
    if (fallocate(fd_.get(), 0, 0, static_cast<off_t>(expected_bytes)) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
      return give_up(io_error("write", path_, errno));
    return base::ok();
  }
  base::Status add(std::string_view bytes) {
    while (!bytes.empty()) {
      if (interrupt_.raised()) return give_up(base::fail(base::ErrorKind::kInterrupted, "the save was interrupted"));
      const std::string_view chunk = bytes.substr(0, kChunk);
      hash_.update(chunk);
      if (auto status = write_bytes(fd_.get(), chunk, path_); !status.ok()) return give_up(std::move(status).error());
      record_.bytes += chunk.size();
      bytes.remove_prefix(chunk.size());
    }
    return base::ok();
  }
  base::Result<FileRecord> close() {
    if (fsync(fd_.get()) != 0) return give_up(io_error("fsync", path_, errno));
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return give_up(io_error("rename", temporary_, errno));
    record_.sha256 = hash_.hex();
    return record_;
  }

 private:
  base::Error give_up(base::Error error) {
    unlink(temporary_.c_str());  // makes room for the note of failure
    return error;
  }
  std::string path_, temporary_;
  const Interrupt& interrupt_;
  os::Fd fd_;
  base::Sha256 hash_;
  FileRecord record_;
};

std::string failure_file(const SaveId& id, int rank) { return id.unfinished() + "/" + record_file(rank, id.world) + ".failed"; }

}  // namespace

std::string SaveId::name() const { return fmt::format("{}.{}", token, sequence); }

base::Result<FileRecord> write_shard(const SaveId& id, int rank, const ShardContent& content, const Interrupt& interrupt,
                                     const StageHook& stage) {
  const std::string folder = id.unfinished();
  ShardRecord record{id.name(), rank, id.world, id.step, {}, {}, content.state};
  TRY_ASSIGN(record.pieces, describe(content.pieces));
  std::vector<TensorInfo> entries;
  for (const PieceRecord& piece : record.pieces)
    entries.push_back({entry_name(piece.tensor.name, piece.begin), piece.tensor.dtype, {piece.count}, 0, 0});
  const std::string header = make_safetensors_header(entries, {{"format", "pt"}});

  reach(stage, "shard");
  if (mkdir(id.folder.c_str(), 0755) != 0 && errno != EEXIST)
    if (auto made = os::make_folders(id.folder, 0755); !made.ok()) return cannot_tell(std::move(made).error());
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return io_error("mkdir", folder, errno);
  ShardWriter writer(folder + "/" + shard_file(rank, id.world), interrupt);
  TRY(writer.open(header.size() + (entries.empty() ? 0 : entries.back().end)));
  TRY(writer.add(header));
  for (const Piece& piece : content.pieces) TRY(writer.add({static_cast<const char*>(piece.data.data_ptr()), piece.data.nbytes()}));
  reach(stage, "shard-sync");
  TRY_ASSIGN(record.shard, writer.close());
  reach(stage, "record");
  TRY(write_durably(folder + "/" + record_file(rank, id.world), to_text(record)));
  TRY(sync_path(folder));
  return record.shard;
}

void note_failure(const SaveId& id, int rank, const base::Error& error) {
  const base::Json note = {{"save", id.name()}, {"message", error.message}, {"cause", error.cause}};
  if (mkdir(id.unfinished().c_str(), 0755) != 0 && errno != EEXIST) return;
  (void)write_durably(failure_file(id, rank), base::to_text(note) + "\n");
}

}  // namespace phalanx::engine::checkpoint
