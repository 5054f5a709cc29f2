// Works through the rows in blocks that stay in the nearest cache: a block's sum is made there in a widened type and goes from there to
// every result. So each row is read once and each result written once, however many of them there are.
#include "engine/comm/shm/arithmetic.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "engine/vectorise.h"

#if defined(PHALANX_MANY_INSTRUCTION_SETS)
#define PHALANX_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
#else
#define PHALANX_WIDE
#endif

namespace phalanx::engine::comm {
namespace {

constexpr int64_t kBlock = 2048;  // elements

// The bits of a 16-bit float; the bit patterns are widened and rounded without branches, so that compilers vectorise it.
struct Brain {
  uint16_t bits;
};
struct HalfFloat {
  uint16_t bits;
};

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
T widen(T value) {
  return value;
}
inline float widen(Brain value) { return bits_as<float>(static_cast<uint32_t>(value.bits) << 16); }
inline float widen(HalfFloat value) { return c10::detail::fp16_ieee_to_fp32_value(value.bits); }

template <class T>
struct Narrow {
  template <class A>
  static T from(A value) {
    return static_cast<T>(value);
  }
};
template <>
struct Narrow<Brain> {
  // To the nearest, ties to even; every NaN becomes the quiet one (as c10::detail::round_to_nearest_even).
  static Brain from(float value) {
    const uint32_t bits = bits_as<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return {static_cast<uint16_t>(value != value ? 0x7fc0u : rounded)};
  }
};
template <>
struct Narrow<HalfFloat> {
  static HalfFloat from(float value) { return {c10::detail::fp16_ieee_from_fp32_value(value)}; }
};

template <class A>
struct Plus {
  static A of(A a, A b) { return a + b; }
};
template <class A>
struct Larger {
  static A of(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) return (a > b || a != a) ? a : b;
    else return a > b ? a : b;
  }
};

// In: element of a row, Out: of a result, A: what is computed in.
template <class In, class Out, class A, class Op>
PHALANX_WIDE void reduce_block(const In* const* rows, size_t count, Out* result, int64_t n) {
  A sums[kBlock];
  const In* first = rows[0];
  if (count == 1) {
    for (int64_t i = 0; i < n; ++i) result[i] = Narrow<Out>::from(static_cast<A>(widen(first[i])));
    return;
  }
  const In* second = rows[1];
  if (count == 2) {
    for (int64_t i = 0; i < n; ++i)
      result[i] = Narrow<Out>::from(Op::of(static_cast<A>(widen(first[i])), static_cast<A>(widen(second[i]))));
    return;
  }
  for (int64_t i = 0; i < n; ++i) sums[i] = Op::of(static_cast<A>(widen(first[i])), static_cast<A>(widen(second[i])));
  for (size_t r = 2; r < count; ++r) {
    const In* row = rows[r];
    for (int64_t i = 0; i < n; ++i) sums[i] = Op::of(sums[i], static_cast<A>(widen(row[i])));
  }
  for (int64_t i = 0; i < n; ++i) result[i] = Narrow<Out>::from(sums[i]);
}

template <class In, class Out, class A, class Op>
void reduce_all(const std::vector<const void*>& rows, const std::vector<void*>& results, int64_t elements) {
  Out result[kBlock];
  std::vector<const In*> at(rows.size());
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t n = std::min(kBlock, elements - begin);
    for (size_t r = 0; r < rows.size(); ++r) at[r] = static_cast<const In*>(rows[r]) + begin;
    if (results.size() == 1) {
      reduce_block<In, Out, A, Op>(at.data(), at.size(), static_cast<Out*>(results.front()) + begin, n);
      continue;
    }
    reduce_block<In, Out, A, Op>(at.data(), at.size(), result, n);
    for (void* one : results) std::memcpy(static_cast<Out*>(one) + begin, result, static_cast<size_t>(n) * sizeof(Out));
  }
}

template <class In, class Out, class Sum, class Max>
void reduce_as(Reduction reduction, const std::vector<const void*>& rows, const std::vector<void*>& results, int64_t elements) {
  if (reduction == Reduction::kMax) reduce_all<In, Out, Max, Larger<Max>>(rows, results, elements);
  else reduce_all<In, Out, Sum, Plus<Sum>>(rows, results, elements);
}

}  // namespace

void reduce_rows(const Arithmetic& a, const std::vector<const void*>& rows, const std::vector<void*>& results, int64_t elements) {
  if (a.in == at::kBFloat16 && a.out == at::kFloat) return reduce_as<Brain, float, float, float>(a.reduction, rows, results, elements);
  if (a.in == at::kFloat && a.out == at::kBFloat16) return reduce_as<float, Brain, float, float>(a.reduction, rows, results, elements);
  if (a.in == at::kHalf && a.out == at::kFloat) return reduce_as<HalfFloat, float, float, float>(a.reduction, rows, results, elements);
  if (a.in == at::kFloat && a.out == at::kHalf) return reduce_as<float, HalfFloat, float, float>(a.reduction, rows, results, elements);
  PHALANX_CHECK(a.in == a.out);
  switch (a.in) {
    case at::kFloat: return reduce_as<float, float, float, float>(a.reduction, rows, results, elements);
    case at::kDouble: return reduce_as<double, double, double, double>(a.reduction, rows, results, elements);
    case at::kBFloat16: return reduce_as<Brain, Brain, float, float>(a.reduction, rows, results, elements);
    case at::kHalf: return reduce_as<HalfFloat, HalfFloat, float, float>(a.reduction, rows, results, elements);
    // Unsigned in sums: they wrap around, signed ones would be undefined.
    case at::kLong: return reduce_as<int64_t, int64_t, uint64_t, int64_t>(a.reduction, rows, results, elements);
    case at::kInt: return reduce_as<int32_t, int32_t, uint32_t, int32_t>(a.reduction, rows, results, elements);
    case at::kByte: return reduce_as<uint8_t, uint8_t, uint32_t, uint8_t>(a.reduction, rows, results, elements);
    default: PHALANX_CHECK(false);
  }
}

void copy_row(void* to, const void* from, size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace phalanx::engine::comm
