#include "sync/manifest.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr uint32_t kVersion = 1, kVersionWithModes = 2;
constexpr size_t kLeastEntryBytes = 9;
constexpr int64_t kMostTimeNs = 1LL << 62;

base::Error malformed(std::string_view why) { return base::fail(ErrorKind::kInternal, fmt::format("malformed list of files: {}", why)); }

base::Status check_path(std::string_view path) {
  if (path.empty() || path.size() > kMostPathBytes) return malformed("a path is empty or too long");
  size_t depth = 1;
  for (size_t at = 0;; ++depth) {  // without a list of the names: there may be 200,000 paths, and the ranks wait
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name == "." || name == ".." || name.size() > kMostNameBytes || name.find('\0') != std::string_view::npos)
      return malformed("a path has a name that is not allowed");
    if (end == path.size()) break;
    at = end + 1;
  }
  return depth > kMostDepth ? malformed("a path is too deep") : base::ok();
}

base::Status check_entry(const EntryView& entry, bool with_modes) {
  TRY(check_path(entry.path));
  if (entry.is_file()) {
    if (entry.content.size() != kDigestBytes) return malformed("a file has no SHA-256");
  }
  if (entry.mtime_ns < -kMostTimeNs || entry.mtime_ns > kMostTimeNs) return malformed("a time is out of range");
  if ((entry.mode & ~kModes) != 0) return malformed("a mode is out of range");
  if (entry.kind == Kind::kLink && with_modes) {
    const std::string_view to = entry.content;
    return to.empty() || to.size() > kMostPathBytes || to.find('\0') != std::string_view::npos ? malformed("a symbolic link leads nowhere")
                                                                                               : base::ok();
  }
  if (entry.kind == Kind::kLink && !link_stays_inside(entry.path, entry.content)) return malformed("a symbolic link leads outside");
  return base::ok();
}

EntryView read_entry(wire::Decoder& in, bool with_modes) {
  EntryView entry;
  entry.path = in.view();
  entry.kind = static_cast<Kind>(in.u8());
  if (entry.kind == Kind::kLink) entry.content = in.view();
  if (with_modes && entry.kind != Kind::kLink) entry.mode = in.u32();
  if (with_modes && entry.kind == Kind::kFolder) entry.mtime_ns = in.i64();
  if (!entry.is_file()) return entry;
  entry.size = in.u64();
  entry.mtime_ns = in.i64();
  entry.content = in.view();
  return entry;
}

template <typename Entries>
std::string encode_entries(const Entries& entries, bool with_modes) {
  std::string bytes;
  constexpr size_t kMostFixedBytes = 40;  // of an entry, beside its path and content
  size_t size = kMostFixedBytes;
  for (const auto& entry : entries) size += entry.path.size() + entry.content.size() + kMostFixedBytes;
  bytes.reserve(size);
  wire::Encoder out(bytes);
  out.u32(with_modes ? kVersionWithModes : kVersion);
  out.u32(static_cast<uint32_t>(entries.size()));
  for (const auto& entry : entries) {
    out.str(entry.path);
    out.u8(static_cast<uint8_t>(entry.kind));
    if (with_modes && entry.kind != Kind::kLink) out.u32(entry.mode);
    if (with_modes && entry.kind == Kind::kFolder) out.i64(entry.mtime_ns);
    if (entry.is_file()) {
      out.u64(entry.size);
      out.i64(entry.mtime_ns);
    }
    if (entry.kind != Kind::kFolder) out.str(entry.content);
  }
  return bytes;
}

}  // namespace

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.size;
  return sum;
}

size_t Manifest::files() const {
  return static_cast<size_t>(std::count_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.kind != Kind::kFolder; }));
}

std::string encode(const Manifest& manifest) { return encode_entries(manifest.entries, manifest.with_modes); }
std::string encode(const std::vector<EntryView>& entries, bool with_modes) { return encode_entries(entries, with_modes); }

base::Result<Listing> Listing::read(std::string text) {
  if (text.size() > kMostManifestBytes) return malformed("too large");
  Listing list;
  list.bytes_ = std::make_unique<const std::string>(std::move(text));
  wire::Decoder in(*list.bytes_);
  const uint32_t version = in.u32();
  if (version != kVersion && version != kVersionWithModes) return malformed("of another version");
  const uint32_t count = in.count(kLeastEntryBytes);
  if (count > kMostEntries) return malformed("too many entries");
  list.with_modes_ = version == kVersionWithModes;
  list.entries_.reserve(count);
  std::unordered_set<std::string_view> folders{""};
  std::string_view last, before;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count && in.good(); ++i) {
    const EntryView entry = read_entry(in, list.with_modes_);
    if (!in.good() || entry.kind > Kind::kLink) break;
    TRY(check_entry(entry, list.with_modes_));
    if (i > 0 && entry.path <= before) return malformed("paths are not in order");
    before = entry.path;
    const size_t slash = entry.path.rfind('/');
    const std::string_view folder = entry.path.substr(0, slash == std::string_view::npos ? 0 : slash);
    if (folder != last) {  // most lie where the one before them lies
      if (!folders.contains(folder)) return malformed("a path lies in no folder that was named before");
      last = folder;
    }
    if (entry.size > kMostCopyBytes || (sum += entry.size) > kMostCopyBytes) return malformed("too many bytes");
    list.entries_.push_back(entry);
    if (entry.kind == Kind::kFolder) folders.insert(entry.path);
  }
  if (!in.done() || list.entries_.size() != count) return malformed("cut off, or with bytes left over");
  return list;
}

base::Result<Manifest> decode(std::string_view bytes) {
  TRY_ASSIGN(const Listing list, Listing::read(std::string(bytes)));
  Manifest manifest;
  manifest.with_modes = list.with_modes();
  manifest.entries.reserve(list.entries().size());
  for (const EntryView& entry : list.entries())
    manifest.entries.push_back({std::string(entry.path), entry.kind, entry.size, entry.mtime_ns, std::string(entry.content), entry.mode});
  return manifest;
}

bool link_stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.size() > kMostPathBytes || target[0] == '/' || target.find('\0') != std::string_view::npos) return false;
  auto depth = std::count(path.begin(), path.end(), '/');
  bool named = false;
  for (std::string_view name : base::split(target, '/')) {
    if (name.empty() || name == ".") continue;
    if (name != "..") named = true;
    else if (named || --depth < 0) return false;
  }
  return true;
}

bool is_copy_name(std::string_view name) {
  return name.size() >= 8 && name.size() <= 64 && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

}  // namespace phalanx::sync
