// Sums and maxima of the ranks' rows, element by element in the order of the rows: ((row 0 + row 1) + row 2) + …, 16-bit floats in fp32 and
// rounded once at the end, integers modulo their size. A maximum with a NaN is NaN.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/comm/group.h"

namespace phalanx::engine::comm {

struct Arithmetic {
  Reduction reduction = Reduction::kSum;
  at::ScalarType in = at::kFloat;   // of the rows
  at::ScalarType out = at::kFloat;  // the same, or kFloat for rows of 16 bits, or 16 bits for rows of kFloat
};

// Writes the result of `rows` to each of `results`; all have `elements` elements. A result may be one of the rows, else they do not
// overlap.
void reduce_rows(const Arithmetic& arithmetic, const std::vector<const void*>& rows, const std::vector<void*>& results, int64_t elements);

// memcpy that does nothing if both are the same place.
void copy_row(void* to, const void* from, size_t bytes);

}  // namespace phalanx::engine::comm
