#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace phalanx::base {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Each works through `count` blocks of 64 bytes.
void blocks_portable(uint32_t* state, const uint8_t* bytes, size_t count) {
  for (; count > 0; --count, bytes += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = uint32_t{bytes[4 * i]} << 24 | uint32_t{bytes[4 * i + 1]} << 16 | uint32_t{bytes[4 * i + 2]} << 8 | bytes[4 * i + 3];
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 64; ++i) {
      uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += add[i];
  }
}

#if defined(__x86_64__)
#define PHALANX_SHA __attribute__((target("sha,sse4.1,ssse3")))

// Four rounds; the state is kept as the instructions want it: a, b, e, f and c, d, g, h. (Intel SDM, SHA256RNDS2.)
PHALANX_SHA inline void four_rounds(__m128i& abef, __m128i& cdgh, __m128i words, size_t round) {
  const __m128i sum = _mm_add_epi32(words, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound.data() + round)));
  cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
  abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
}

// The four words behind w3.
PHALANX_SHA inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
  return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
}

PHALANX_SHA void blocks_x86(uint32_t* state, const uint8_t* bytes, size_t count) {
  auto* words = reinterpret_cast<__m128i*>(state);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1), efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    auto* block = reinterpret_cast<const __m128i*>(bytes);
    __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(block), big_endian), w1 = _mm_shuffle_epi8(_mm_loadu_si128(block + 1), big_endian);
    __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(block + 2), big_endian), w3 = _mm_shuffle_epi8(_mm_loadu_si128(block + 3), big_endian);
    for (size_t round = 0;; round += 16) {
      four_rounds(abef, cdgh, w0, round);
      four_rounds(abef, cdgh, w1, round + 4);
      four_rounds(abef, cdgh, w2, round + 8);
      four_rounds(abef, cdgh, w3, round + 12);
      if (round == 48) break;
      w0 = next_words(w0, w1, w2, w3);
      w1 = next_words(w1, w2, w3, w0);
      w2 = next_words(w2, w3, w0, w1);
      w3 = next_words(w3, w0, w1, w2);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

// CPUID: leaf 1 has SSSE3 and SSE4.1, leaf 7 SHA.
bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#else
constexpr auto blocks_x86 = blocks_portable;
bool has_sha_instructions() { return false; }
#endif

}  // namespace

Sha256::Sha256(Code code)
    : blocks_(blocks_portable),
      state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      pending_{} {
  static const bool fast = has_sha_instructions();
  if (fast && code == Code::kBest) blocks_ = blocks_x86;
}

void Sha256::update(std::string_view bytes) {
  total_ += bytes.size();
  const uint8_t* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t size = bytes.size();
  while (size > 0) {
    if (pending_size_ == 0 && size >= 64) {
      blocks_(state_.data(), data, size / 64);
      data += size / 64 * 64;
      size %= 64;
      continue;
    }
    size_t take = std::min(size, 64 - pending_size_);
    std::memcpy(pending_.data() + pending_size_, data, take);
    pending_size_ += take;
    data += take;
    size -= take;
    if (pending_size_ == 64) {
      blocks_(state_.data(), pending_.data(), 1);
      pending_size_ = 0;
    }
  }
}

std::string Sha256::bytes() {
  uint64_t bits = total_ * 8;
  update(std::string_view("\x80", 1));
  while (pending_size_ != 56) update(std::string_view("\0", 1));
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  update(std::string_view(length, 8));
  std::string out;
  for (uint32_t word : state_)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift & 0xff);
  return out;
}

std::string Sha256::hex() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : bytes()) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  constexpr size_t kBlock = 64;
  auto digest = [](std::string_view first, std::string_view then) {
    Sha256 hash;
    hash.update(first);
    hash.update(then);
    return hash.bytes();
  };
  std::string block(key.size() > kBlock ? digest(key, "") : key);
  block.resize(kBlock, '\0');
  std::string inner = block, outer = block;
  for (size_t i = 0; i < kBlock; ++i) {
    inner[i] = static_cast<char>(inner[i] ^ 0x36);
    outer[i] = static_cast<char>(outer[i] ^ 0x5c);
  }
  return digest(outer, digest(inner, message));
}

bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]) & 0xFFu;
  return difference == 0;
}

}  // namespace phalanx::base
