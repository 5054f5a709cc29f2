// Bytes from one rank to another over Gloo.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/compat.h"

namespace phalanx::engine::comm {

#ifdef PHALANX_GLOO

// Messages under way; they are waited for together. The memory must stay until then.
class Batch {
 public:
  explicit Batch(compat::Backend& backend) : backend_(&backend) {}
  // `tag`: sender and receiver agree on it; between two ranks messages of one tag keep their order. Nothing is sent for no bytes.
  void send(int to, uint64_t tag, const void* bytes, size_t size);
  void receive(int from, uint64_t tag, void* bytes, size_t size);
  // Throws "rank 3: Connection reset by peer …", or when the group's timeout passes, or `limit` if that is above 0.
  void finish(std::chrono::milliseconds limit = std::chrono::milliseconds{0});

 private:
  struct One {
    int peer;
    c10::intrusive_ptr<c10d::Work> work;
    std::vector<at::Tensor> tensors;  // kept alive
  };
  compat::Backend* backend_;
  std::vector<One> sends_, receives_;
};

#endif

}  // namespace phalanx::engine::comm
