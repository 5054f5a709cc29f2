// A flat tensor whose memory comes and goes while views of it stay: parameters stay the module's own tensors, with their shapes,
// names and places in the autograd graph, although their values are elsewhere most of the time.
//
// Only the pointer inside the storage changes. (Giving the parameters new data instead, set_data, would not do: a graph keeps
// views such as weight.t(), and those would hold the old memory alive.) Writing through memory() does not count as an in-place
// change for autograd, and is none: the values come back as they were.
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx::engine::parallel {

// What wants to know that an operation is about to read or write its tensors.
class Touchable {
 public:
  virtual ~Touchable() = default;
};

class LiveStorage {
 public:
  // Without memory at first. `owner` is what owner_of() answers for every tensor on this storage.
  LiveStorage(int64_t elements, at::TensorOptions options, Touchable* owner);
  ~LiveStorage();  // tensors that still refer to it have no memory from now on
  LiveStorage(const LiveStorage&) = delete;
  LiveStorage& operator=(const LiveStorage&) = delete;

  const at::Tensor& tensor() const { return tensor_; }  // 1-D; take views of it at any time, use them while present()
  bool present() const { return memory_.defined(); }
  // A tensor of its own on the same memory, for whoever fills it. Present only.
  const at::Tensor& memory() const { return memory_; }
  void allocate();  // uninitialised
  void release();

  // The owner of the storage a tensor lies in; nullptr for any other tensor.
  static Touchable* owner_of(const at::Tensor& tensor);

 private:
  void point_to(void* address);
  int64_t elements_;
  at::TensorOptions options_;
  Touchable* owner_;
  at::Tensor tensor_;
  at::Tensor memory_;
};

}  // namespace phalanx::engine::parallel
