// The finishing rank's part of a checkpoint: all records, the manifest, DONE, the final name.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/layout.h"
#include "engine/checkpoint/sharded.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

using std::chrono::milliseconds;

void reach(const StageHook& hook, std::string_view stage) {
  if (hook) hook(stage);
}

// The records of all ranks, as they come.
class Collector {
 public:
  explicit Collector(const SaveId& id) : id_(id), records_(static_cast<size_t>(id.world)), hashes_(static_cast<size_t>(id.world)) {
    for (int rank = 0; rank < id.world; ++rank) missing_.push_back(rank);
  }

  base::Status wait(milliseconds deadline, const Interrupt& interrupt) {
    const os::Mono end = os::mono_now() + deadline;
    // Events come for ranks of this host; what another host writes to a shared disk is only seen by looking.
    os::Fd events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (events.valid()) inotify_add_watch(events.get(), id_.unfinished().c_str(), IN_MOVED_TO);
    for (milliseconds pause{10};; pause = std::min(pause * 2, milliseconds(1000))) {
      TRY(look());
      if (missing_.empty()) return base::ok();
      if (interrupt.raised()) return base::fail(base::ErrorKind::kInterrupted, "the save was interrupted");
      TRY(still_owner(id_.folder, id_.token));
      TRY_ASSIGN(const bool there, is_there(id_.unfinished()));
      if (!there) return io_error("open", id_.unfinished(), ENOENT);
      const auto left = std::chrono::duration_cast<milliseconds>(end - os::mono_now());
      if (left <= milliseconds(0)) return late(deadline);
      interrupt.wait(events.get(), std::min(pause, left));
      char seen[4096];
      while (events.valid() && read(events.get(), seen, sizeof(seen)) > 0) continue;
    }
  }
  const std::vector<ShardRecord>& records() const { return records_; }
  const std::vector<FileRecord>& files() const { return hashes_; }

 private:
  base::Status look() {
    for (size_t i = 0; i < missing_.size();) {
      const int rank = missing_[i];
      const std::string path = id_.unfinished() + "/" + record_file(rank, id_.world);
      TRY_ASSIGN(const bool came, is_there(path));
      if (came) {
        TRY(take(rank, path));
        missing_.erase(missing_.begin() + static_cast<ptrdiff_t>(i));
        continue;
      }
      TRY_ASSIGN(const bool refused, is_there(path + ".failed"));
      if (refused) return failed(rank, path + ".failed");
      ++i;
    }
    return base::ok();
  }
  base::Status take(int rank, const std::string& path) {
    TRY_ASSIGN(std::string text, os::read_file(path, kMaxRecordBytes));
    auto record = parse_shard_record(text);
    if (!record.ok()) return std::move(record.error()).within(fmt::format("reading {}", base::quote(path)));
    if (record->save != id_.name() || record->rank != rank || record->world != id_.world || record->step != id_.step)
      return base::fail(base::ErrorKind::kInternal, fmt::format("{} belongs to another save", base::quote(path)));
    struct stat info{};
    const std::string shard = id_.unfinished() + "/" + shard_file(rank, id_.world);
    if (stat(shard.c_str(), &info) != 0) return io_error("stat", shard, errno);
    if (static_cast<uint64_t>(info.st_size) != record->shard.bytes)
      return base::fail(base::ErrorKind::kInternal,
                        fmt::format("{} has {} bytes, but rank {} wrote {}", base::quote(shard), info.st_size, rank, record->shard.bytes));
    hashes_[static_cast<size_t>(rank)] = {text.size(), base::sha256_hex(text)};
    records_[static_cast<size_t>(rank)] = std::move(*record);
    return base::ok();
  }
  base::Error failed(int rank, const std::string& note) const {
    base::Error error = base::fail(base::ErrorKind::kUnfit, fmt::format("rank {} could not write its shard", rank));
    auto text = os::read_file(note, 1 << 16);
    if (!text.ok()) return error;
    auto json = base::parse_json(*text, 1 << 16);
    if (!json.ok()) return error;
    return std::move(error).because(base::printable(base::get_string(*json, "message").value_or("it gave no reason"), 1000));
  }
  base::Error late(milliseconds deadline) const {
    return base::fail(base::ErrorKind::kTimeout, fmt::format("the shards of rank(s) {} did not arrive", base::format_ranges(missing_)))
        .because(fmt::format("{} waited {} for them in {}", id_.world > 1 ? "the finishing rank" : "this rank",
                             base::format_duration(deadline), base::quote(id_.unfinished(), 400)))
        .with_hint("all ranks must share the folder; check that it is on a shared disk");
  }

  const SaveId& id_;
  std::vector<int> missing_;
  std::vector<ShardRecord> records_;
  std::vector<FileRecord> hashes_;  // of the records
};

base::Result<Manifest> manifest_of(const SaveId& id, const Collector& all, const base::Json& state) {
  Manifest manifest{id.name(), id.step, id.world, {}, {}, state};
  Layout layout;
  for (int rank = 0; rank < id.world; ++rank) {
    const ShardRecord& record = all.records()[static_cast<size_t>(rank)];
    manifest.files.push_back({shard_file(rank, id.world), record.shard});
    manifest.files.push_back({record_file(rank, id.world), all.files()[static_cast<size_t>(rank)]});
    for (const PieceRecord& piece : record.pieces) TRY(layout.add(piece, rank, 0));
  }
  TRY(layout.complete());
  for (const auto& [name, extent] : layout.tensors()) manifest.tensors.push_back({name, extent.dtype, extent.shape});
  return manifest;
}

base::Error taken(const std::string& path) {
  return base::fail(base::ErrorKind::kConfig,
                    fmt::format("{} already exists and is not a checkpoint of this program", base::quote(path, 400)))
      .because("it contains no manifest, record or DONE mark from phalanx-train, so it is not replaced")
      .with_hint("move it to another folder, or train into another `out`");
}

// For file systems without RENAME_EXCHANGE. The old checkpoint keeps all its files until the new one has its name; a crash in between is
// settled by the next start (clean_leftovers).
base::Result<std::string> replace_in_two_steps(const SaveId& id, const std::string& path) {
  const std::string from = id.unfinished(), aside = fmt::format("{}/{}{}", id.folder, kReplacedPrefix, name_of_step(id.step));
  if (rename(path.c_str(), aside.c_str()) != 0) return io_error("rename", path, errno);
  if (rename(from.c_str(), path.c_str()) == 0) return aside;
  base::Error error = io_error("rename", from, errno);
  if (rename(aside.c_str(), path.c_str()) != 0)
    error.context.push_back(fmt::format("the older checkpoint stays in {}", base::quote(aside, 400)));
  return error;
}

// Gives the unfinished folder its final name, in one system call where the file system can, also if an older checkpoint of the same step
// has it. Returns where that older one is now, "" if there was none.
base::Result<std::string> take_name(const SaveId& id, const std::string& path) {
  const std::string from = id.unfinished();
  TRY_ASSIGN(const OwnerLock lock, OwnerLock::take(id.folder));
  TRY(still_owner(id.folder, id.token));
  TRY_ASSIGN(const bool exists, is_there(path));
  if (!exists) {
    if (rename(from.c_str(), path.c_str()) != 0) return io_error("rename", from, errno);
    return std::string();
  }
  TRY_ASSIGN(const bool ours, is_ours(path));
  if (!ours) return taken(path);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return from;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return io_error("rename", from, errno);
  return replace_in_two_steps(id, path);
}

// Best mark and removal of old ones: only by the owner, and what fails harms no checkpoint.
base::Status tidy(const SaveId& id, const FinishOptions& options, const StageHook& stage, Removals& removals) {
  reach(stage, "best");
  TRY(still_owner(id.folder, id.token));
  if (options.best) TRY(mark_best(id.folder, *options.best));
  reach(stage, "prune");
  return prune(id.folder, {options.keep, id.step}, &removals);
}

}  // namespace

base::Result<Finished> finish(const SaveId& id, const FinishOptions& options, const Interrupt& interrupt, const StageHook& stage) {
  reach(stage, "collect");
  Collector collector(id);
  TRY(collector.wait(options.deadline, interrupt));
  reach(stage, "manifest");
  TRY_ASSIGN(Manifest manifest, manifest_of(id, collector, options.state));
  const std::string folder = id.unfinished(), text = to_text(manifest);
  TRY(write_durably(folder + "/" + kManifestFile, text));
  reach(stage, "done");
  TRY(sync_path(folder));
  TRY(write_durably(folder + "/" + kDoneFile, base::sha256_hex(text) + "\n"));
  TRY(sync_path(folder));
  reach(stage, "publish");
  Finished finished{id.folder + "/" + name_of_step(id.step), "", {}};
  TRY_ASSIGN(const std::string older, take_name(id, finished.path));
  TRY(sync_path(id.folder));
  auto behind = [&](const base::Status& status) {
    if (status.ok() || !finished.trouble.empty()) return;
    finished.trouble = status.error().message;
    if (!status.error().hint.empty()) finished.trouble += "; " + status.error().hint;
  };
  if (!older.empty()) {
    behind(remove_checkpoint(older));
    if (finished.trouble.empty()) finished.removals.push_back(fmt::format("removed the older checkpoint of step {}", id.step));
  }
  behind(tidy(id, options, stage, finished.removals));
  return finished;
}

}  // namespace phalanx::engine::checkpoint
