#include "sync/hashes.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/try.h"
#include "os/clock.h"
#include "os/files.h"
#include "wire/bounds.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr size_t kPiece = 256 << 10;
constexpr size_t kMostHashers = 8, kWorthAThread = 16;
constexpr uint32_t kIndexVersion = 1;
constexpr int64_t kUnsettledNs = 2'000'000'000;  // a file may change once more without its times showing it

struct Known {
  Stamp stamp;
  std::string digest;
};
using Index = std::unordered_map<std::string, Known>;

Index read_index(const std::string& path) {
  Index index;
  base::Result<std::optional<std::string>> bytes = os::read_if_present(path, kMostManifestBytes);
  if (path.empty() || !bytes.ok() || !*bytes) return index;
  wire::Decoder in(**bytes);
  if (in.u32() != kIndexVersion) return index;
  const uint32_t count = in.count(40);
  for (uint32_t i = 0; i < count && in.good(); ++i) {
    std::string name = in.str();
    Known known;
    known.stamp.size = in.u64();
    known.stamp.inode = in.u64();
    known.stamp.mtime_ns = in.i64();
    known.stamp.ctime_ns = in.i64();
    known.digest = in.str();
    if (known.digest.size() == kDigestBytes) index.emplace(std::move(name), std::move(known));
  }
  return in.done() ? index : Index{};
}

void write_index(const std::string& path, const Index& index) {
  std::string bytes;
  wire::Encoder out(bytes);
  out.u32(kIndexVersion);
  out.u32(static_cast<uint32_t>(index.size()));
  for (const auto& [name, known] : index) {
    out.str(name);
    out.u64(known.stamp.size);
    out.u64(known.stamp.inode);
    out.i64(known.stamp.mtime_ns);
    out.i64(known.stamp.ctime_ns);
    out.str(known.digest);
  }
  if (os::make_folders(path.substr(0, path.rfind('/'))).ok()) (void)os::write_file_atomic(path, bytes, 0600, os::Durable::kNo);
}

base::Result<std::string> hash_file(const std::string& root, const Entry& entry, const Stamp& stamp, const Hashed& hashed) {
  const std::string path = root + "/" + entry.path;
  base::Result<std::optional<os::Fd>> opened = open_inside(root, entry.path);
  if (!opened.ok()) return base::system_error("open", path);  // the error names only the last step
  if (!*opened)
    return base::fail(ErrorKind::kUsage, fmt::format("{} was changed while it was copied", path))
        .with_hint(std::string(wire::kAdviceOnArrived));
  const os::Fd file = *std::move(*opened);
  base::Sha256 hash;
  std::string buffer(std::min<uint64_t>(stamp.size + 1, kPiece), '\0');
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
base::Status hash_unknown(const std::string& root, const std::vector<Stamp>& stamps, const std::vector<size_t>& unknown,
                          const Hashed& hashed, Scan& scan) {
  std::mutex mutex;
  std::optional<base::Error> failed;
  std::atomic<size_t> next = 0, failed_at = unknown.size();
  const Hashed said = !hashed ? Hashed() : [&](uint64_t bytes) {
    std::lock_guard lock(mutex);
    hashed(bytes);
  };
  auto work = [&] {
    for (size_t k = next++; k < failed_at; k = next++) {
      Entry& entry = scan.manifest.entries[unknown[k]];
      base::Result<std::string> digest = hash_file(root, entry, stamps[unknown[k]], said);
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
  using Work = decltype(work);
  std::vector<pthread_t> threads;
  const size_t wanted =
      std::min({kMostHashers, size_t{std::max(1U, std::thread::hardware_concurrency())}, unknown.size() / kWorthAThread + 1});
  // Not std::thread: where the user may have no more threads, it ends the program.
  auto run = [](void* own) -> void* {
    (*static_cast<Work*>(own))();
    return nullptr;
  };
  for (pthread_t thread; threads.size() + 1 < wanted && ::pthread_create(&thread, nullptr, run, &work) == 0;) threads.push_back(thread);
  work();
  for (pthread_t thread : threads) ::pthread_join(thread, nullptr);
  if (!failed) return base::ok();
  failed->kind = ErrorKind::kUsage;
  return std::move(*failed);
}

}  // namespace

base::Result<std::optional<os::Fd>> open_inside(const std::string& root, const std::string& path) {
  return os::open_regular_below(root + "/.", path);
}

base::Status hash_all(const std::string& root, const std::vector<Stamp>& stamps, const std::string& index_path, const Hashed& hashed,
                      Scan& scan) {
  const Index before = read_index(index_path);
  Index after;
  const int64_t settled = os::wall_now_ns() - kUnsettledNs;
  std::vector<size_t> unknown;
  for (size_t i = 0; i < scan.manifest.entries.size(); ++i) {
    Entry& entry = scan.manifest.entries[i];
    if (!entry.is_file()) continue;
    const auto known = before.find(entry.path);
    if (known == before.end() || known->second.stamp != stamps[i]) unknown.push_back(i);
    else entry.content = known->second.digest;
  }
  TRY(hash_unknown(root, stamps, unknown, hashed, scan));
  scan.hashed = unknown.size();
  if (index_path.empty()) return base::ok();
  for (size_t i = 0, next = 0; i < scan.manifest.entries.size(); ++i) {
    const Entry& entry = scan.manifest.entries[i];
    if (!entry.is_file()) continue;
    const bool is_new = next < unknown.size() && unknown[next] == i;
    if (is_new) ++next;
    if (!is_new || std::max(stamps[i].mtime_ns, stamps[i].ctime_ns) <= settled) after.emplace(entry.path, Known{stamps[i], entry.content});
  }
  if (!unknown.empty() || after.size() != before.size()) write_index(index_path, after);
  return base::ok();
}

}  // namespace phalanx::sync
