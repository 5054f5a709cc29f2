// A group that hands every call on to another one: for tests that change one of them.
#pragma once

#include "engine/comm/group.h"

namespace phalanx {
class ForwardingGroup : public engine::comm::Group {
  using Work = std::unique_ptr<engine::comm::Pending>;

 public:
  explicit ForwardingGroup(engine::comm::Group& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int world() const override { return inner_.world(); }
  at::Device device() const override { return inner_.device(); }
  std::string describe() const override { return inner_.describe(); }
  bool ordered_sums() const override { return inner_.ordered_sums(); }
  Work start_all_reduce(at::Tensor tensor, engine::comm::Reduction reduction, std::string_view label) override {
    return inner_.start_all_reduce(std::move(tensor), reduction, label);
  }
  Work start_reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) override {
    return inner_.start_reduce_scatter(std::move(output), std::move(input), label);
  }
  Work start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) override {
    return inner_.start_all_gather(std::move(output), std::move(input), label);
  }
  Work start_broadcast(at::Tensor tensor, int root, std::string_view label) override {
    return inner_.start_broadcast(std::move(tensor), root, label);
  }
  void barrier(std::string_view name, std::chrono::milliseconds deadline) override { inner_.barrier(name, deadline); }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override { return inner_.window(elements, dtype); }
  std::vector<at::Tensor> peers(const at::Tensor& window) override { return inner_.peers(window); }
  std::optional<at::Tensor> common(int64_t elements, at::ScalarType dtype) override { return inner_.common(elements, dtype); }
  std::unique_ptr<engine::comm::Group> split(int color, int key) override { return inner_.split(color, key); }
  void leave() override { inner_.leave(); }

 private:
  engine::comm::Group& inner_;
};
}  // namespace phalanx
