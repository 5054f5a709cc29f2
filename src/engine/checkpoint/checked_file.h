// A file of which a checkpoint's manifest says what it is. Errors name it and say what differs (kConfig), or
// that the file system failed (kUnfit), which proves no damage.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "engine/checkpoint/record.h"
#include "engine/checkpoint/safetensors.h"
#include "os/fd.h"

namespace phalanx::engine::checkpoint {

class CheckedFile {
 public:
  CheckedFile(std::string path, FileRecord expected) : path_(std::move(path)), expected_(std::move(expected)) {}

  // Not a symbolic link, a regular file, of the expected size. It stays open: what is removed meanwhile can still be read.
  base::Status open();
  base::Result<SafetensorsHeader> read_header() const;
  base::Result<std::string> read_all(size_t max_bytes);  // and hashes it
  base::Status read(uint64_t offset, std::span<char> out) const;
  base::Status verify();  // hashes it unless that is done; from any thread
  void trust() { verified_ = true; }

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return expected_.bytes; }
  const FileRecord& expected() const { return expected_; }
  base::Error damaged(std::string why) const;

 private:
  base::Status compare(const std::string& found) const;
  std::string path_;
  FileRecord expected_;
  os::Fd fd_;
  std::atomic<bool> verified_{false};
};

}  // namespace phalanx::engine::checkpoint
