// The near side: what of a folder is to be copied. Of code, .git and what .gitignore files leave out (sync/ignore.h), with the files above
// the folder up to the one that holds .git, is not. Hashes of unchanged files come from an index of the last scan.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "sync/aside.h"
#include "sync/manifest.h"

namespace phalanx::sync {

class Inside;

struct ScanLimits {
  uint64_t bytes = 2'000'000'000;
  size_t files = 200'000;
  // A file that was changed less long ago is not kept in the index: it may change once more without its times showing it. What a program
  // writes through a mapping shows only when the kernel has written the page to the disk since, which takes up to 35 s (30 s of
  // dirty_expire_centisecs, and 5 s until that is looked at).
  int64_t unsettled_s = 60;
};
inline constexpr ScanLimits kPushLimits{kMostCopyBytes, kMostEntries};

enum class Take {
  kCode,        // what git would take; links that stay inside
  kEverything,  // with modes, and links wherever they lead; neither takes what a push leaves (is_of_a_push)
};
using Hashed = std::function<void(uint64_t bytes)>;  // so many more were read; called by several threads, one at a time
// Whether this file or folder, relative to the root, is left out as well; called by several threads at once.
using Leave = std::function<bool(const std::string& path)>;

// What a push leaves in its target, which may lie anywhere in what is pushed: the record for the next one, and while one is under way what
// has arrived.
inline constexpr const char* kRecord = ".phalanx-push";
inline constexpr const char* kIncoming = ".phalanx-push.part";
inline constexpr const char* kLeaving = ".phalanx-push.part.";       // and a number: that folder while it is removed
inline constexpr const char* kSourceMark = ".phalanx-push.source.";  // and a random number, in the source (sync/source_mark.h)
bool is_of_a_push(std::string_view name);                            // without folders

struct Scan {
  Manifest manifest;
  size_t hashed = 0;         // files that were read; the others are as the index has them
  size_t links_outside = 0;  // they are absolute or may lead out of the folder; left out of code
  size_t special = 0;        // left out: neither file nor folder nor link
  std::string left_out;      // one of these, as an example
  uint32_t mode = 0;         // of the folder itself, of kModes
};

// index: the file that keeps the hashes; empty: none. It is written anew where something changed; that this fails only costs time.
// Error kUsage: beyond the limits; it names the largest folders. Waits for the disk.
base::Result<Scan> scan(const std::string& root, const ScanLimits& limits, const std::string& index, Take take = Take::kCode,
                        const Hashed& hashed = {}, const Leave& leave = {});

// The content of a file of the scan in pieces, for the wire. Where the file got shorter meanwhile, zeros follow: the far side then sees
// that its hash is another.
class ContentReader {
 public:
  // aside: may be null; contents that are there are not read from files. Outlives the reader.
  explicit ContentReader(std::string root, const Aside* aside = nullptr);
  ~ContentReader();
  void begin(const Entry& entry, uint64_t from = 0);  // from: a byte
  bool more() const { return left_ > 0; }
  // Reads on while there is more(): one byte at least, where there is room; zeros where the file cannot be read or has become shorter.
  std::string_view next(std::span<char> room);

 private:
  std::unique_ptr<Inside> inside_;
  const Aside* aside_;
  os::Fd file_;
  int from_ = -1;  // the descriptor that is read: file_, or that of aside_
  uint64_t at_ = 0, left_ = 0;
};

}  // namespace phalanx::sync
