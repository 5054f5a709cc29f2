// Parameters and gradients laid end to end in a few flat buffers ("buckets"), so that one all-reduce, one clip and one
// optimizer pass each work on a few long rows instead of many small tensors. The module keeps its tensors: they become
// views of the buffers, and so do their gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace engine::parallel {

struct NamedParam {
  std::string name;
  at::Tensor value;   // a leaf that wants a gradient
  bool decay = true;  // weight decay applies; never mixed with others in a bucket
};

struct Slot {
  std::string name;
  at::Tensor param;    // a view of Bucket::params; its .grad() is a view of Bucket::grads
  int64_t offset = 0;  // in elements
};

struct Bucket {
  std::vector<Slot> slots;
  at::Tensor params;  // 1-D
  at::Tensor grads;   // the same length, zero where slots are padded
  bool decay = true;
};

struct BucketSizes {
  int64_t first_bytes = 1 << 20;  // small, so that the first all-reduce starts early in backward (as PyTorch's DDP)
  int64_t bytes = 25 << 20;
};

// Takes the parameters in their order of use in forward; the buckets are in the order in which backward fills them. Every
// slot starts on a 64-byte boundary. All parameters must have one dtype and device. The tensors' storage is replaced, so
// move the module to its device before, not after.
std::vector<Bucket> flatten(const std::vector<NamedParam>& params, const BucketSizes& sizes = {});

// A view of `flat` (one of the bucket's buffers, or a third one of its length) shaped as the slot's parameter.
at::Tensor view_of(const at::Tensor& flat, const Slot& slot);

void zero_grads(std::vector<Bucket>& buckets);
// Scales all gradients so that their joint Euclidean norm is at most max_norm (0: leave them); returns the norm before.
double clip_grads(std::vector<Bucket>& buckets, double max_norm);

}  // namespace engine::parallel
