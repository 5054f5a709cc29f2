// Items to a batch: what has equal shapes is stacked, rows of different length are padded to the longest.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/data/dataset.h"

namespace phalanx::engine::data {

struct Padding {
  int64_t tokens = 0;    // fills up integer fields, but for `targets`, which get kNoTarget; fields of other types get 0
  int64_t multiple = 1;  // lengths of padded fields are rounded up to a multiple of it
};

// Some rows of a step, that go through the model together.
struct MicroBatch {
  std::vector<Field> fields;  // each [rows, …], in the order of the items' fields
  at::Tensor lengths;         // [rows] int64: before padding, of the first field with one dimension; undefined when there is none
  int64_t rows = 0;
  int64_t targets = 0;  // how many entries of the field "targets" are not kNoTarget; without such a field: rows

  const at::Tensor& at(const std::string& name) const;  // throws std::out_of_range
};

// All items need the same fields of the same types, in the same order; fields of one dimension may differ in length, others not
// in shape. Padded fields are never shorter than 1. Errors (kConfig) say which item of `items` differs and how.
base::Result<MicroBatch> collate(std::span<const Sample> items, const Padding& padding);

}  // namespace phalanx::engine::data
