// Files of token ids: the layout of docs/formats/token-file.md. Pure: bytes in, values out; needs no libtorch.
//
// A header of 64 bytes, the tokens as little-endian u16 or u32, zeros up to a multiple of 8, and the table of documents: where
// each begins, as u64. The headerless files of nanoGPT (u16 tokens from the first byte to the last) are read too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::engine::data {

inline constexpr size_t kTokenHeaderBytes = 64;
inline constexpr uint32_t kTokenFileVersion = 1;

struct TokenHeader {
  uint32_t width = 2;       // bytes per token: 2 or 4
  uint64_t tokens = 0;      //
  uint64_t documents = 0;   // entries of the table; 0: the file is one document
  uint64_t vocabulary = 0;  // every token is below it; 0: not known
};

// Tokens in memory, of 1, 2 or 4 bytes each: text is tokens of one byte. A view: what it points into must outlive it.
struct TokenView {
  const char* data = nullptr;
  uint32_t width = 1;
  uint64_t count = 0;

  int64_t at(uint64_t i) const {
    if (width == 1) return static_cast<unsigned char>(data[i]);
    uint32_t value = 0;  // little-endian machines only, which CMake and the header's magic see to
    std::memcpy(&value, data + i * width, width);
    return value;
  }
  void copy(uint64_t first, uint64_t many, int64_t* to) const;
};

struct TokenFile {
  TokenHeader header;
  TokenView tokens;
  std::string_view documents;  // the table's bytes
  uint64_t document(uint64_t i) const {
    uint64_t begin = 0;
    std::memcpy(&begin, documents.data() + i * sizeof begin, sizeof begin);
    return begin;
  }
};

bool has_token_magic(std::string_view bytes);
// The whole file's bytes. Another version, lengths that do not add up to the file, a table that does not begin at 0 and rise:
// errors (kConfig) that name what was found. The tokens themselves are not looked at.
base::Result<TokenFile> parse_token_file(std::string_view bytes);
// nanoGPT's convention; an odd number of bytes is an error.
base::Result<TokenFile> parse_nanogpt_file(std::string_view bytes);

std::string make_token_header(const TokenHeader& header);
uint64_t padded_token_bytes(const TokenHeader& header);  // of the tokens with the zeros behind them

}  // namespace phalanx::engine::data
