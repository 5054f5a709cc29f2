// What a copy of a folder consists of: one entry per folder, file and symbolic link, in the order of their paths. It crosses a process
// boundary and is kept beside every copy (docs/formats/sync-store.md), so decode() checks everything that writing by it relies on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::sync {

enum class Kind : uint8_t { kFolder = 0, kFile = 1, kProgram = 2, kLink = 3 };  // kProgram: a file with the x bit of its owner

struct Entry {
  std::string path;  // relative, names separated by one '/'
  Kind kind = Kind::kFile;
  uint64_t size = 0;         // of a file
  int64_t mtime_ns = 0;      // of a file; with modes, of a folder too
  std::string content = {};  // of a file: its SHA-256, 32 bytes; of a link: where it points
  uint32_t mode = 0;         // with modes: the permissions of a file or folder, of kModes
  bool is_file() const { return kind == Kind::kFile || kind == Kind::kProgram; }
  bool operator==(const Entry&) const = default;
};

// What of the permissions is carried: nobody but the owner can write to what arrives, since groups and users differ between hosts.
inline constexpr uint32_t kModes = 0755;

struct Manifest {
  std::vector<Entry> entries;
  bool with_modes = false;  // a directory that is pushed: modes, times of folders, and links that may lead anywhere
  uint64_t bytes() const;   // of all files
  size_t files() const;     // and links
};

inline constexpr size_t kMostEntries = 2'000'000;
inline constexpr size_t kMostManifestBytes = 512 << 20;
inline constexpr size_t kMostPathBytes = 4000, kMostNameBytes = 255, kMostDepth = 128;
inline constexpr uint64_t kMostCopyBytes = 1ULL << 44;
inline constexpr size_t kDigestBytes = 32;

std::string encode(const Manifest& manifest);

// An entry of a list in its bytes.
struct EntryView {
  std::string_view path;
  Kind kind = Kind::kFile;
  uint32_t mode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  std::string_view content = {};
  bool is_file() const { return kind == Kind::kFile || kind == Kind::kProgram; }
  bool operator==(const EntryView&) const = default;
};
std::string encode(const std::vector<EntryView>& entries, bool with_modes);

// A list as its reader has it: the bytes, and entries that point into them. A host looks through 20,000 paths while the ranks wait, so none
// is copied. The bytes never move.
class Listing {
 public:
  // Error: as of decode().
  static base::Result<Listing> read(std::string bytes);
  Listing() = default;  // without entries

  const std::string& bytes() const { return *bytes_; }
  const std::vector<EntryView>& entries() const { return entries_; }
  bool with_modes() const { return with_modes_; }

 private:
  std::unique_ptr<const std::string> bytes_ = std::make_unique<const std::string>();
  std::vector<EntryView> entries_;
  bool with_modes_ = false;
};

// What makes one list of another, which is much shorter than the list where little has changed; in docs/formats/sync-store.md.
std::string changes_between(const Listing& before, const Listing& now);
// Error kInternal: malformed, or not made for this list as far as that shows; what comes out is to be read like any other bytes.
base::Result<std::string> with_changes(const Listing& before, std::string_view changes);

// Error (kInternal): cut off, counts or sizes beyond the limits, a path that is absolute, has "..", "." or an empty name, is not behind the
// one before it, or does not lie in a folder that was named before; without modes, a link that is absolute or leads outside
// (link_stays_inside). Nothing is ever written through a link.
base::Result<Manifest> decode(std::string_view bytes);

// Whether a link at `path` can only lead to what is inside, whatever other such links there are: `..` stands only at its beginning, where
// the folders passed are real ones, and not more often than `path` is deep.
bool link_stays_inside(std::string_view path, std::string_view target);

// The name of a copy: 8 to 64 of a-z, 0-9 and '-'.
bool is_copy_name(std::string_view name);

}  // namespace phalanx::sync
