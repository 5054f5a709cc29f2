// Where each element of each tensor lies among the files of a checkpoint. Pure, without torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/record.h"

namespace phalanx::engine::checkpoint {

struct Run {
  int64_t begin = 0, count = 0;  // elements of the flattened tensor
  int file = 0;                  // whose it is: the number given to add()
  uint64_t offset = 0;           // bytes, from the start of that file
};

struct Extent {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t count = 0;      // elements of the whole tensor
  std::vector<Run> runs;  // in the order of their elements, once complete() was called
};

class Layout {
 public:
  // Error: a piece of the same tensor had another shape or dtype.
  base::Status add(const PieceRecord& piece, int file, uint64_t offset);
  // Sorts the runs. Error: elements that lie in no piece, or in two; the tensor, the elements and the files' numbers are named
  // ("rank 1" for file 1).
  base::Status complete();
  const std::map<std::string, Extent, std::less<>>& tensors() const { return tensors_; }

 private:
  std::map<std::string, Extent, std::less<>> tensors_;
};

}  // namespace phalanx::engine::checkpoint
