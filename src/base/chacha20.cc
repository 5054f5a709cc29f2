#include "base/chacha20.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace phalanx::base {
namespace {

using Words = std::array<uint32_t, 16>;

void quarter(Words& w, int a, int b, int c, int d) {
  w[a] += w[b], w[d] = std::rotl(w[d] ^ w[a], 16);
  w[c] += w[d], w[b] = std::rotl(w[b] ^ w[c], 12);
  w[a] += w[b], w[d] = std::rotl(w[d] ^ w[a], 8);
  w[c] += w[d], w[b] = std::rotl(w[b] ^ w[c], 7);
}

Words block(const Words& start) {
  Words w = start;
  for (int i = 0; i < 10; ++i) {
    quarter(w, 0, 4, 8, 12), quarter(w, 1, 5, 9, 13), quarter(w, 2, 6, 10, 14), quarter(w, 3, 7, 11, 15);
    quarter(w, 0, 5, 10, 15), quarter(w, 1, 6, 11, 12), quarter(w, 2, 7, 8, 13), quarter(w, 3, 4, 9, 14);
  }
  for (size_t i = 0; i < w.size(); ++i) w[i] += start[i];
  return w;
}

}  // namespace

void chacha20(std::string& bytes, std::string_view key, std::string_view nonce, uint32_t counter) {
  PHALANX_CHECK(key.size() == kChaChaKeyBytes && nonce.size() == kChaChaNonceBytes);
  static_assert(std::endian::native == std::endian::little, "the words of RFC 8439 are little-endian");
  Words start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(&start[4], key.data(), key.size());
  start[12] = counter;
  std::memcpy(&start[13], nonce.data(), nonce.size());
  for (size_t at = 0; at < bytes.size(); at += sizeof(Words), ++start[12]) {
    const Words stream = block(start);
    char raw[sizeof(Words)];
    std::memcpy(raw, stream.data(), sizeof(raw));
    for (size_t i = 0; i < sizeof(raw) && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<char>(bytes[at + i] ^ raw[i]);
  }
}

}  // namespace phalanx::base
