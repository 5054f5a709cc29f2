// The windows of a group of ranks on one host: which tensors lie where all of them can see them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/comm/shm/segment.h"

namespace phalanx::engine::comm {

class Windows {
 public:
  // A window of which every rank has `stride` bytes of the mapping, one after the other (0: all have the same bytes). `id` is the same in
  // all ranks and above 0.
  at::Tensor add(uint64_t id, const std::shared_ptr<Mapping>& mapping, size_t stride, int index, int64_t elements, at::ScalarType dtype);

  struct Found {
    uint64_t id = 0;
    uint64_t offset = 0;  // from the beginning of this rank's bytes
    bool common = false;
  };
  // Where a tensor lies; nullopt: in ordinary memory.
  std::optional<Found> find(const void* data, size_t bytes);
  // `offset` bytes behind the beginning of rank `index`'s part of a window. nullptr: not within it.
  char* address(uint64_t id, int index, uint64_t offset, size_t bytes);
  // All ranks' tensors of the window that this one is.
  std::vector<at::Tensor> all(const at::Tensor& window, int count);

 private:
  struct One {
    uint64_t id;
    std::weak_ptr<Mapping> mapping;
    size_t stride, own_begin, own_bytes;
  };
  One* at(const void* data, size_t bytes);
  std::map<uintptr_t, One> by_address_;  // of this rank's own bytes
  std::map<uint64_t, uintptr_t> by_id_;
};

}  // namespace phalanx::engine::comm
