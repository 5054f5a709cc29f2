#include "engine/data/files/token_file.h"

#include <fmt/format.h>

#include <bit>

#include "base/try.h"

namespace phalanx::engine::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and used in place");

constexpr std::string_view kMagic{"PHXTOKEN", 8};

base::Error broken(std::string what) {
  return base::fail(base::ErrorKind::kConfig, "the token file is malformed or incomplete").because(std::move(what));
}

template <typename T>
T read_at(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

base::Status check_documents(const TokenFile& file) {
  uint64_t before = 0;
  for (uint64_t i = 0; i < file.header.documents; ++i) {
    const uint64_t begin = file.document(i);
    if (i == 0 && begin != 0) return broken(fmt::format("the first document begins at token {}, not 0", begin));
    if (i > 0 && begin <= before) return broken(fmt::format("document {} begins at token {}, not after {}", i, begin, before));
    if (begin >= file.header.tokens) return broken(fmt::format("document {} begins at token {} of {}", i, begin, file.header.tokens));
    before = begin;
  }
  return base::ok();
}

}  // namespace

void TokenView::copy(uint64_t first, uint64_t many, int64_t* to) const {
  const char* from = data + first * width;
  if (width == 1) {
    for (uint64_t i = 0; i < many; ++i) to[i] = static_cast<unsigned char>(from[i]);
  } else if (width == 2) {
    for (uint64_t i = 0; i < many; ++i) {
      uint16_t value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      to[i] = value;
    }
  } else {
    for (uint64_t i = 0; i < many; ++i) {
      uint32_t value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      to[i] = value;
    }
  }
}

bool has_token_magic(std::string_view bytes) { return bytes.starts_with(kMagic); }

uint64_t padded_token_bytes(const TokenHeader& header) { return (header.tokens * header.width + 7) / 8 * 8; }

std::string make_token_header(const TokenHeader& header) {
  std::string out(kMagic);
  put(out, kTokenFileVersion);
  put(out, header.width);
  put(out, header.tokens);
  put(out, header.documents);
  put(out, header.vocabulary);
  out.resize(kTokenHeaderBytes, '\0');
  return out;
}

base::Result<TokenFile> parse_token_file(std::string_view bytes) {
  if (bytes.size() < kTokenHeaderBytes)
    return broken(fmt::format("it has {} bytes; the header alone takes {}", bytes.size(), kTokenHeaderBytes));
  if (!has_token_magic(bytes)) return broken("it does not begin with PHXTOKEN");
  if (auto version = read_at<uint32_t>(bytes, 8); version != kTokenFileVersion)
    return broken(fmt::format("it has version {}; this program reads version {}", version, kTokenFileVersion));
  TokenFile file;
  TokenHeader& header = file.header;
  header.width = read_at<uint32_t>(bytes, 12);
  header.tokens = read_at<uint64_t>(bytes, 16);
  header.documents = read_at<uint64_t>(bytes, 24);
  header.vocabulary = read_at<uint64_t>(bytes, 32);
  if (header.width != 2 && header.width != 4) return broken(fmt::format("it claims {} bytes per token; 2 and 4 are known", header.width));
  for (size_t at = 40; at < kTokenHeaderBytes; ++at)
    if (bytes[at] != '\0') return broken(fmt::format("byte {} of the header is not 0", at));
  const uint64_t room = bytes.size() - kTokenHeaderBytes;
  // Compared by division first, so that counts that lie cannot overflow the sums.
  if (header.tokens > room / header.width || header.documents > room / 8 || padded_token_bytes(header) + header.documents * 8 != room)
    return broken(fmt::format("it claims {} tokens of {} bytes and {} documents, which do not make its {} bytes", header.tokens,
                              header.width, header.documents, bytes.size()));
  file.tokens = {bytes.data() + kTokenHeaderBytes, header.width, header.tokens};
  file.documents = bytes.substr(kTokenHeaderBytes + padded_token_bytes(header));
  TRY(check_documents(file));
  return file;
}

base::Result<TokenFile> parse_nanogpt_file(std::string_view bytes) {
  if (bytes.size() % 2 != 0)
    return broken(fmt::format("it has {} bytes, but a file of 16-bit tokens has an even number of bytes", bytes.size()));
  TokenFile file;
  file.header = {.width = 2, .tokens = bytes.size() / 2, .documents = 0, .vocabulary = 0};
  file.tokens = {bytes.data(), 2, file.header.tokens};
  return file;
}

}  // namespace phalanx::engine::data
