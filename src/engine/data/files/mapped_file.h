// A file mapped for reading: it may be far larger than memory, and the ranks of one host share its pages. No descriptor stays
// open, so a set of thousands of files fits below any limit of descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::engine::data {

class MappedFile {
 public:
  // An empty file is fine and has no bytes. What is missing, unreadable or not a regular file is an error (kConfig).
  static base::Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }
  // Error (kConfig) when the file has become shorter: to touch a page that is gone raises SIGBUS. One stat(2); a file that was
  // replaced by another of its name is fine, the mapping keeps the old one.
  base::Status intact() const;
  // The number of the line at `offset`, from 1. Any thread. Counts from the place asked for last, so that to ask for many bad lines one
  // after the other goes through the file once.
  uint64_t line_of(uint64_t offset) const;
  // Of the length and of pages spread evenly over the file: cheap on any size, and different for a different content.
  uint64_t fingerprint() const;

 private:
  struct Counted {
    std::mutex mutex;
    uint64_t offset = 0, line = 1;
  };
  MappedFile() = default;
  void swap(MappedFile& other) noexcept;
  std::string path_;
  std::string_view bytes_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::unique_ptr<Counted> counted_ = std::make_unique<Counted>();
};

}  // namespace phalanx::engine::data
