#include "engine/parallel/live_storage.h"

#include <ATen/ops/empty.h>
#include <c10/core/Storage.h>

namespace phalanx::engine::parallel {
namespace {

// The mark of our storages: this function as the deleter, the owner as its context. It frees nothing, memory_ does.
void not_ours_to_free(void*) {}

}  // namespace

LiveStorage::LiveStorage(int64_t elements, at::TensorOptions options, Touchable* owner)
    : elements_(elements), options_(options.requires_grad(false)), owner_(owner), tensor_(at::empty({0}, options_)) {
  const size_t bytes = static_cast<size_t>(elements) * tensor_.element_size();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, owner_, not_ours_to_free, tensor_.device()));
  tensor_.set_(storage, 0, {elements_}, {1});
}

LiveStorage::~LiveStorage() { tensor_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(nullptr, tensor_.device())); }

void LiveStorage::point_to(void* address) {
  tensor_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(address, owner_, not_ours_to_free, tensor_.device()));
}

void LiveStorage::allocate() {
  memory_ = at::empty({elements_}, options_);
  point_to(memory_.data_ptr());
}

void LiveStorage::release() {
  point_to(nullptr);
  memory_ = at::Tensor();
}

Touchable* LiveStorage::owner_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& data = tensor.storage().data_ptr();
  return data.get_deleter() == &not_ours_to_free ? static_cast<Touchable*>(data.get_context()) : nullptr;
}

}  // namespace phalanx::engine::parallel
