// Operations with known results, on any group: each rank's input follows from a seed, so every rank can compute what must come out.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "engine/comm/group.h"

namespace phalanx::calls {

enum class What { kSum, kMax, kReduceScatter, kAllGather, kBroadcast };

struct Call {
  What what = What::kSum;
  at::ScalarType dtype = at::kFloat;
  int64_t elements = 0;  // of a piece for reduce_scatter and all_gather
  int root = 0;
  int64_t seed = 0;
  bool in_place = false;  // reduce_scatter, all_gather: the own piece of the large tensor
  bool in_window = false;
  int hosts = 1;  // sums are made host by host
};

std::string say(const Call& call);
inline constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kByte};

// A call under way.
class Started {
 public:
  // Fills the tensors and starts the operation.
  Started(engine::comm::Group& group, const Call& call);
  // Waits, and holds the result against what it must be, bit for bit. A difference is a test failure.
  void finish();

 private:
  engine::comm::Group& group_;
  Call call_;
  at::Tensor large_, small_;
  std::unique_ptr<engine::comm::Pending> pending_;
};

// What `rank` puts in: to be read only, other ranks have the same tensor.
at::Tensor input_of(const Call& call, int rank, int64_t elements);

}  // namespace phalanx::calls
