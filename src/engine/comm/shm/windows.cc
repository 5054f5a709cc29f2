#include "engine/comm/shm/windows.h"

#include <ATen/ops/from_blob.h>

namespace phalanx::engine::comm {
namespace {

at::Tensor tensor_at(const std::shared_ptr<Mapping>& mapping, size_t begin, int64_t elements, at::ScalarType dtype) {
  return at::from_blob(mapping->data() + begin, {elements}, [mapping](void*) {}, at::TensorOptions().dtype(dtype));
}

}  // namespace

at::Tensor Windows::add(uint64_t id, const std::shared_ptr<Mapping>& mapping, size_t stride, int index, int64_t elements,
                        at::ScalarType dtype) {
  std::erase_if(by_address_, [](const auto& one) { return one.second.mapping.expired(); });
  std::erase_if(by_id_, [this](const auto& one) { return !by_address_.count(one.second); });
  const size_t begin = stride * static_cast<size_t>(index), bytes = stride ? stride : mapping->size();
  const auto address = reinterpret_cast<uintptr_t>(mapping->data() + begin);
  by_address_[address] = {id, mapping, stride, begin, bytes};
  by_id_[id] = address;
  return tensor_at(mapping, begin, elements, dtype);
}

Windows::One* Windows::at(const void* data, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) return nullptr;
  auto& [begin, one] = *std::prev(next);
  const bool within = address - begin <= one.own_bytes && bytes <= one.own_bytes - (address - begin);
  return within && !one.mapping.expired() ? &one : nullptr;
}

std::optional<Windows::Found> Windows::find(const void* data, size_t bytes) {
  if (by_address_.empty()) return std::nullopt;
  const One* one = at(data, bytes);
  if (!one) return std::nullopt;
  const auto mapping = one->mapping.lock();
  const auto offset = static_cast<const char*>(data) - (mapping->data() + one->own_begin);
  return Found{one->id, static_cast<uint64_t>(offset), one->stride == 0};
}

char* Windows::address(uint64_t id, int index, uint64_t offset, size_t bytes) {
  const auto known = by_id_.find(id);
  if (known == by_id_.end()) return nullptr;
  const One& one = by_address_.at(known->second);
  const auto mapping = one.mapping.lock();
  if (!mapping || offset > one.own_bytes || bytes > one.own_bytes - offset) return nullptr;
  return mapping->data() + one.stride * static_cast<size_t>(index) + offset;
}

std::vector<at::Tensor> Windows::all(const at::Tensor& window, int count) {
  const One* one = at(window.data_ptr(), window.nbytes());
  if (!one) return {};
  const auto mapping = one->mapping.lock();
  const auto offset = static_cast<size_t>(static_cast<const char*>(window.data_ptr()) - (mapping->data() + one->own_begin));
  std::vector<at::Tensor> tensors;
  for (int index = 0; index < count; ++index)
    tensors.push_back(tensor_at(mapping, one->stride * static_cast<size_t>(index) + offset, window.numel(), window.scalar_type()));
  return tensors;
}

}  // namespace phalanx::engine::comm
