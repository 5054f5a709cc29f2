#include "engine/comm/messages.h"

#ifdef PHALANX_GLOO

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <stdexcept>

#include "engine/comm/group.h"

namespace phalanx::engine::comm {
namespace {

std::vector<at::Tensor> as_tensors(const void* bytes, size_t size) {
  return {at::from_blob(const_cast<void*>(bytes), {static_cast<int64_t>(size)}, at::TensorOptions().dtype(at::kByte))};
}

int as_tag(uint64_t tag) { return static_cast<int>(tag & 0x7fffffff); }

}  // namespace

void Batch::send(int to, uint64_t tag, const void* bytes, size_t size) {
  if (size == 0) return;
  std::vector<at::Tensor> tensors = as_tensors(bytes, size);
  auto work = backend_->send(tensors, to, as_tag(tag));
  sends_.push_back({to, std::move(work), std::move(tensors)});
}

void Batch::receive(int from, uint64_t tag, void* bytes, size_t size) {
  if (size == 0) return;
  std::vector<at::Tensor> tensors = as_tensors(bytes, size);
  auto work = backend_->recv(tensors, from, as_tag(tag));
  receives_.push_back({from, std::move(work), std::move(tensors)});
}

void Batch::finish(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (std::vector<One>* works : {&receives_, &sends_})
    for (One& one : *works) {
      try {
        if (limit.count() <= 0) one.work->wait();
        else {
          const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
          one.work->wait(std::max(left, std::chrono::milliseconds{1}));
        }
      } catch (const std::exception& failure) { fail_within(fmt::format("rank {}", one.peer), failure); }
    }
  receives_.clear();
  sends_.clear();
}

}  // namespace phalanx::engine::comm

#endif
