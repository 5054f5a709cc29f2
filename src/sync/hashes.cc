#include "sync/hashes.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/try.h"
#include "os/clock.h"
#include "os/files.h"
#include "sync/threads.h"
#include "wire/bounds.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr size_t kPiece = 256 << 10;
constexpr size_t kWorthAThread = 16;
constexpr uint32_t kIndexVersion = 2;

// In the order of the list that it was made from.
struct Known {
  std::string path;
  Stamp stamp;
  std::string digest;
};
using Index = std::vector<Known>;

Index read_index(const std::string& path) {
  Index index;
  base::Result<std::optional<std::string>> bytes = os::read_if_present(path, kMostManifestBytes);
  if (path.empty() || !bytes.ok() || !*bytes) return index;
  wire::Decoder in(**bytes);
  if (in.u32() != kIndexVersion) return index;
  const uint32_t count = in.count(40);
  index.reserve(count);
  for (uint32_t i = 0; i < count && in.good(); ++i) {
    Known known;
    known.path = in.str();
    known.stamp.size = in.u64();
    known.stamp.inode = in.u64();
    known.stamp.mtime_ns = in.i64();
    known.stamp.ctime_ns = in.i64();
    known.digest = in.str();
    if (known.digest.size() != kDigestBytes || (!index.empty() && known.path <= index.back().path)) in.refuse();
    index.push_back(std::move(known));
  }
  return in.done() ? index : Index{};
}

void write_index(const std::string& path, const Scan& scan, const std::vector<Stamp>& stamps, const std::vector<size_t>& kept) {
  std::string bytes;
  wire::Encoder out(bytes);
  out.u32(kIndexVersion);
  out.u32(static_cast<uint32_t>(kept.size()));
  for (size_t i : kept) {
    out.str(scan.manifest.entries[i].path);
    out.u64(stamps[i].size);
    out.u64(stamps[i].inode);
    out.i64(stamps[i].mtime_ns);
    out.i64(stamps[i].ctime_ns);
    out.str(scan.manifest.entries[i].content);
  }
  if (os::make_folders(path.substr(0, path.rfind('/'))).ok()) (void)os::write_file_atomic(path, bytes, 0600, os::Durable::kNo);
}

base::Result<std::string> hash_file(Inside& inside, std::string& buffer, const Entry& entry, const Hashed& hashed) {
  const std::string path = inside.root() + "/" + entry.path;
  base::Result<std::optional<os::Fd>> opened = inside.open(entry.path);
  if (!opened.ok()) return base::system_error("open", path);  // the error names only the last step
  if (!*opened)
    return base::fail(ErrorKind::kUsage, fmt::format("{} was changed while it was copied", path))
        .with_hint(std::string(wire::kAdviceOnArrived));
  const os::Fd file = *std::move(*opened);
  base::Sha256 hash;
  for (;;) {
    os::IoStep step = os::read_step(file.get(), buffer.data(), buffer.size());
    if (step.kind == os::IoStep::kEnd) break;
    if (step.kind != os::IoStep::kBytes) return base::system_error("read", path, step.error_number);
    hash.update(std::string_view(buffer).substr(0, step.bytes));
    if (hashed) hashed(step.bytes);
  }
  return hash.bytes();
}

// On a few threads: one alone hashes more slowly than a disk reads. The error of the first file in the list that cannot be read.
base::Status hash_unknown(const std::string& root, const std::vector<size_t>& unknown, const Hashed& hashed, Scan& scan) {
  std::mutex mutex;
  std::optional<base::Error> failed;
  std::atomic<size_t> next = 0, failed_at = unknown.size();
  const Hashed said = !hashed ? Hashed() : [&](uint64_t bytes) {
    std::lock_guard lock(mutex);
    hashed(bytes);
  };
  auto work = [&] {
    Inside inside(root);
    std::string buffer(kPiece, '\0');
    for (size_t k = next++; k < failed_at; k = next++) {
      Entry& entry = scan.manifest.entries[unknown[k]];
      base::Result<std::string> digest = hash_file(inside, buffer, entry, said);
      if (digest.ok()) {
        entry.content = std::move(digest).value();
        continue;
      }
      std::lock_guard lock(mutex);
      if (k >= failed_at) continue;
      failed_at = k;
      failed = std::move(digest).error();
    }
  };
  on_threads(std::min(most_threads(), unknown.size() / kWorthAThread + 1), work);
  if (!failed) return base::ok();
  failed->kind = ErrorKind::kUsage;
  return std::move(*failed);
}

}  // namespace

base::Result<std::optional<os::Fd>> Inside::open(const std::string& path) {
  constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const size_t slash = path.rfind('/'), length = slash == std::string::npos ? 0 : slash;
  if (!at_.valid() || folder_.compare(0, std::string::npos, path, 0, length) != 0) {
    if (!top_.valid()) top_ = os::Fd(::open((root_ + "/.").c_str(), kStep));
    folder_ = path.substr(0, length);
    at_ = top_.valid() ? os::Fd(::openat(top_.get(), ".", kStep)) : os::Fd();
    for (std::string_view rest = folder_; at_.valid() && !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      at_ = os::Fd(::openat(at_.get(), std::string(name).c_str(), kStep));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    if (!at_.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return std::optional<os::Fd>();
    if (!at_.valid()) return base::system_error("open", root_);
  }
  return os::open_regular_if_present(at_.get(), slash == std::string::npos ? path : path.substr(slash + 1));
}

base::Status hash_all(const std::string& root, const std::vector<Stamp>& stamps, const std::string& index_path, int64_t unsettled_s,
                      const Hashed& hashed, Scan& scan) {
  Index before = read_index(index_path);
  const int64_t settled = os::wall_now_ns() - unsettled_s * 1'000'000'000;
  std::vector<size_t> unknown, kept;
  size_t b = 0;
  for (size_t i = 0; i < scan.manifest.entries.size(); ++i) {
    Entry& entry = scan.manifest.entries[i];
    if (!entry.is_file()) continue;
    while (b < before.size() && before[b].path < entry.path) ++b;
    const bool known = b < before.size() && before[b].path == entry.path && before[b].stamp == stamps[i];
    if (known) entry.content = std::move(before[b].digest);
    else unknown.push_back(i);
    if (known || std::max(stamps[i].mtime_ns, stamps[i].ctime_ns) <= settled) kept.push_back(i);
  }
  TRY(hash_unknown(root, unknown, hashed, scan));
  scan.hashed = unknown.size();
  if (!index_path.empty() && (!unknown.empty() || kept.size() != before.size())) write_index(index_path, scan, stamps, kept);
  return base::ok();
}

}  // namespace phalanx::sync
