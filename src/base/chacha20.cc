#include "base/chacha20.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace phalanx::base {
namespace {

// One word of four blocks that follow each other: they are made side by side.
using Lanes = uint32_t __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
using Words = std::array<Lanes, 16>;
constexpr size_t kBlockBytes = 64;

Lanes rotl(Lanes v, int bits) { return (v << bits) | (v >> (32 - bits)); }

void quarter(Words& w, int a, int b, int c, int d) {
  w[a] += w[b], w[d] = rotl(w[d] ^ w[a], 16);
  w[c] += w[d], w[b] = rotl(w[b] ^ w[c], 12);
  w[a] += w[b], w[d] = rotl(w[d] ^ w[a], 8);
  w[c] += w[d], w[b] = rotl(w[b] ^ w[c], 7);
}

void blocks(const Words& start, char* out) {
  Words w = start;
  for (int i = 0; i < 10; ++i) {
    quarter(w, 0, 4, 8, 12), quarter(w, 1, 5, 9, 13), quarter(w, 2, 6, 10, 14), quarter(w, 3, 7, 11, 15);
    quarter(w, 0, 5, 10, 15), quarter(w, 1, 6, 11, 12), quarter(w, 2, 7, 8, 13), quarter(w, 3, 4, 9, 14);
  }
  for (size_t i = 0; i < w.size(); ++i) {
    w[i] += start[i];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t word = w[i][lane];
      std::memcpy(out + lane * kBlockBytes + i * sizeof(word), &word, sizeof(word));
    }
  }
}

}  // namespace

void chacha20(std::string& bytes, std::string_view key, std::string_view nonce, uint32_t counter) {
  PHALANX_CHECK(key.size() == kChaChaKeyBytes && nonce.size() == kChaChaNonceBytes);
  static_assert(std::endian::native == std::endian::little, "the words of RFC 8439 are little-endian");
  uint32_t words[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(words + 4, key.data(), key.size());
  std::memcpy(words + 13, nonce.data(), nonce.size());
  Words start;
  for (size_t i = 0; i < start.size(); ++i) start[i] = Lanes{words[i], words[i], words[i], words[i]};
  start[12] = Lanes{counter, counter + 1, counter + 2, counter + 3};
  char stream[kLanes * kBlockBytes];
  for (size_t at = 0; at < bytes.size(); at += sizeof(stream), start[12] += kLanes) {
    blocks(start, stream);
    const size_t size = std::min(sizeof(stream), bytes.size() - at);
    char* text = bytes.data() + at;
    size_t i = 0;
    for (; i + sizeof(Lanes) <= size; i += sizeof(Lanes)) {
      Lanes mine, other;
      std::memcpy(&mine, text + i, sizeof(mine));
      std::memcpy(&other, stream + i, sizeof(other));
      mine ^= other;
      std::memcpy(text + i, &mine, sizeof(mine));
    }
    for (; i < size; ++i) text[i] = static_cast<char>(text[i] ^ stream[i]);
  }
}

}  // namespace phalanx::base
