// A tar archive (POSIX.1-2017 pax, ustar headers) as bytes. Pure. Regular files only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::base {

class TarWriter {
 public:
  // mtime_s: of every file, seconds since 1970.
  explicit TarWriter(int64_t mtime_s) : mtime_s_(mtime_s) {}

  // path: relative, at most 255 bytes, split at a '/' where it is longer than 100 (ustar); false: it cannot be written so.
  bool add(std::string_view path, std::string_view content);
  // The archive with its end. Nothing may be added afterwards.
  std::string finish() &&;
  size_t size() const { return out_.size(); }

 private:
  int64_t mtime_s_;
  std::string out_;
};

}  // namespace phalanx::base
