// fp32 to and from the 16-bit types, as torch rounds: to the nearest, ties to even. NaN stays NaN; fp16 overflows to infinity. For the
// loops of kernel files: without branches, on integers.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/vectorise.h"

namespace phalanx::engine {

PHALANX_INLINE float fp32_of_bf16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

PHALANX_INLINE uint16_t bf16_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}

// Exponents are moved by multiplication with powers of two, so subnormal halves come out right.
PHALANX_INLINE float fp32_of_fp16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t shifted = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  const uint32_t magnitude = shifted >= (0x7c00u << 13) ? shifted | 0x7f800000 : scaled;
  return std::bit_cast<float>(sign | magnitude);
}

PHALANX_INLINE uint16_t fp16_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000, size = bits & 0x7fffffff;
  const uint32_t normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
  // Below 2^-14 the sum with 0.5 leaves the half's bits at the low end of the fraction, rounded by the adder.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
  uint32_t half = size < 0x38800000 ? small : normal;
  half = size >= 0x477ff000 ? 0x7c00 : half;  // 65520 and more
  half = size > 0x7f800000 ? 0x7e00 : half;
  return static_cast<uint16_t>(sign | half);
}

}  // namespace phalanx::engine
