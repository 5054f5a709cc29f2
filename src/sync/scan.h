// The near side: what of a folder is to be copied. Leaves out .git and what .gitignore files leave out (sync/ignore.h), with the files
// above the folder up to the one that holds .git. Hashes of unchanged files come from an index of the last scan.
#pragma once

#include <string>

#include "base/result.h"
#include "sync/manifest.h"

namespace phalanx::sync {

struct ScanLimits {
  uint64_t bytes = 2'000'000'000;
  size_t files = 200'000;
};

struct Scan {
  Manifest manifest;
  size_t hashed = 0;         // files that were read; the others are as the index has them
  size_t links_outside = 0;  // left out: they are absolute or may lead out of the folder
  size_t special = 0;        // left out: neither file nor folder nor link
  std::string left_out;      // one of these, as an example
};

// index: the file that keeps the hashes; empty: none. It is written anew where something changed; that this fails only costs time.
// Error kUsage: beyond the limits; it names the largest folders. Waits for the disk.
base::Result<Scan> scan(const std::string& root, const ScanLimits& limits, const std::string& index);

// The content of a file of the scan in pieces, for the wire. Where the file got shorter meanwhile, zeros follow: the far side then sees
// that its hash is another.
class ContentReader {
 public:
  explicit ContentReader(std::string root) : root_(std::move(root)) {}
  void begin(const Entry& entry);
  bool more() const { return left_ > 0; }
  std::string_view next();  // valid until the next call

 private:
  std::string root_, buffer_;
  int fd_ = -1;
  uint64_t left_ = 0;

 public:
  ~ContentReader();
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;
};

}  // namespace phalanx::sync
