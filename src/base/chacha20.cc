#include "base/chacha20.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#define PHALANX_AVX2 __attribute__((target("avx2")))
#endif
#define PHALANX_INLINE __attribute__((always_inline)) inline

namespace phalanx::base {
namespace {

constexpr size_t kBlockBytes = 64;

// One word of as many blocks that follow each other: they are made side by side.
using Four = uint32_t __attribute__((vector_size(16)));
using Eight = uint32_t __attribute__((vector_size(32)));

template <typename Lanes, int bits>
PHALANX_INLINE void mix(Lanes& to, const Lanes& added, Lanes& turned) {
  to += added;
  turned ^= to;
  turned = (turned << bits) | (turned >> (32 - bits));
}

template <typename Lanes>
PHALANX_INLINE void quarter(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  mix<Lanes, 16>(a, b, d);
  mix<Lanes, 12>(c, d, b);
  mix<Lanes, 8>(a, b, d);
  mix<Lanes, 7>(c, d, b);
}

template <typename Lanes>
PHALANX_INLINE void blocks(const Lanes (&start)[16], char* out) {
  Lanes w[16];
  std::copy(start, start + 16, w);
  for (int i = 0; i < 10; ++i) {
    quarter(w[0], w[4], w[8], w[12]), quarter(w[1], w[5], w[9], w[13]);
    quarter(w[2], w[6], w[10], w[14]), quarter(w[3], w[7], w[11], w[15]);
    quarter(w[0], w[5], w[10], w[15]), quarter(w[1], w[6], w[11], w[12]);
    quarter(w[2], w[7], w[8], w[13]), quarter(w[3], w[4], w[9], w[14]);
  }
  for (size_t i = 0; i < 16; ++i) {
    w[i] += start[i];
    for (size_t lane = 0; lane < sizeof(Lanes) / sizeof(uint32_t); ++lane) {
      const uint32_t word = w[i][lane];
      std::memcpy(out + lane * kBlockBytes + i * sizeof(word), &word, sizeof(word));
    }
  }
}

// words: of the first block (RFC 8439, section 2.3).
template <typename Lanes>
PHALANX_INLINE void encrypt(std::string& bytes, const uint32_t (&words)[16]) {
  constexpr size_t kLanes = sizeof(Lanes) / sizeof(uint32_t);
  Lanes start[16];
  for (size_t i = 0; i < 16; ++i)
    for (size_t lane = 0; lane < kLanes; ++lane) start[i][lane] = words[i] + (i == 12 ? static_cast<uint32_t>(lane) : 0);
  char stream[kLanes * kBlockBytes];
  for (size_t at = 0; at < bytes.size(); at += sizeof(stream), start[12] += static_cast<uint32_t>(kLanes)) {
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

void encrypt_portable(std::string& bytes, const uint32_t (&words)[16]) { encrypt<Four>(bytes, words); }

#if defined(__x86_64__)
PHALANX_AVX2 void encrypt_avx2(std::string& bytes, const uint32_t (&words)[16]) { encrypt<Eight>(bytes, words); }

// CPUID: leaf 7 has AVX2, and the kernel keeps its registers (leaf 1: OSXSAVE; bits 1 and 2 of XCR0).
bool has_avx2() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  unsigned kept = 0, high = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  return (kept & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#else
constexpr auto encrypt_avx2 = encrypt_portable;
bool has_avx2() { return false; }
#endif

}  // namespace

void chacha20(std::string& bytes, std::string_view key, std::string_view nonce, uint32_t counter, ChaChaCode code) {
  PHALANX_CHECK(key.size() == kChaChaKeyBytes && nonce.size() == kChaChaNonceBytes);
  static_assert(std::endian::native == std::endian::little, "the words of RFC 8439 are little-endian");
  uint32_t words[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(words + 4, key.data(), key.size());
  words[12] = counter;
  std::memcpy(words + 13, nonce.data(), nonce.size());
  static const bool wide = has_avx2();
  (wide && code == ChaChaCode::kBest ? encrypt_avx2 : encrypt_portable)(bytes, words);
}

}  // namespace phalanx::base
