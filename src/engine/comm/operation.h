// One call of a group: what a group's kinds of work have in common, before it is carried out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/comm/group.h"

namespace phalanx::engine::comm {

enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };

struct Operation {
  Kind kind = Kind::kBarrier;
  Reduction reduction = Reduction::kSum;
  int root = -1;          // of a broadcast
  uint64_t sequence = 0;  // counts the group's operations, from 1
  std::string label;
  at::Tensor output, input;               // all_reduce and broadcast: the same tensor; barrier: none
  std::chrono::milliseconds deadline{0};  // of a barrier
};

std::string_view name_of(Kind kind);          // "all_reduce"
std::string say(const Operation& operation);  // "all_reduce 17 (grads unit 3)", for errors
inline int64_t elements_of(const Operation& operation) { return operation.input.defined() ? operation.input.numel() : 0; }
inline size_t bytes_of(const Operation& operation) { return operation.input.defined() ? operation.input.nbytes() : 0; }
inline at::ScalarType dtype_of(const Operation& operation) { return operation.input.defined() ? operation.input.scalar_type() : at::kByte; }

// Throws what is wrong with the call by itself: a type no group moves, tensors that are not contiguous, on another device, of sizes that
// do not fit each other.
void check_call(const Operation& operation, int world, at::Device device);

}  // namespace phalanx::engine::comm
