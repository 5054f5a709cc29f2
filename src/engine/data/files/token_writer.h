// Writes a token file (token_file.h) of any size in one pass. The file appears under its name when it is whole, or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/data/files/token_file.h"
#include "os/fd.h"

namespace phalanx::engine::data {

class TokenWriter {
 public:
  // vocabulary: 1 to 2^32; tokens take 2 bytes each where 16 bits suffice for it. Error (kConfig): the file cannot be made.
  static base::Result<TokenWriter> create(const std::string& path, uint64_t vocabulary);
  TokenWriter(TokenWriter&&) = default;
  ~TokenWriter();  // removes what was not finished

  // Tokens of the current document. Error: a token outside the vocabulary (kConfig), or the disk's.
  base::Status add(std::span<const int64_t> tokens);
  // What is added next belongs to a new document. Two in a row, or one at the start, count once.
  void end_document() { begins_document_ = true; }
  base::Result<TokenHeader> finish();

 private:
  TokenWriter(std::string path, os::Fd fd, TokenHeader header) : path_(std::move(path)), fd_(std::move(fd)), header_(header) {}
  base::Status flush();
  std::string partial() const { return path_ + ".partial"; }

  std::string path_;
  os::Fd fd_;
  TokenHeader header_;
  std::vector<uint64_t> documents_;
  std::string buffer_;
  bool begins_document_ = true;
};

// Each file becomes one document of byte tokens (vocabulary 256). Error: an input that cannot be read, or the disk's.
base::Result<TokenHeader> write_byte_tokens(const std::vector<std::string>& inputs, const std::string& output);

}  // namespace phalanx::engine::data
