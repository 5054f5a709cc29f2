// A world of one rank.
#include <ATen/ops/zeros.h>

#include "engine/comm/make_group.h"
#include "engine/comm/queued_group.h"

namespace phalanx::engine::comm {
namespace {

class SingleRank final : public QueuedGroup {
 public:
  explicit SingleRank(at::Device device) : QueuedGroup(Runs::kAtWait, {}), device_(device) {}
  ~SingleRank() override { stop_thread(); }
  int rank() const override { return 0; }
  int world() const override { return 1; }
  at::Device device() const override { return device_; }
  std::string describe() const override { return "no communication"; }
  bool ordered_sums() const override { return true; }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override {
    return at::zeros({elements}, at::TensorOptions().dtype(dtype).device(device_));
  }
  std::vector<at::Tensor> peers(const at::Tensor& window) override { return {window}; }
  std::optional<at::Tensor> common(int64_t elements, at::ScalarType dtype) override { return window(elements, dtype); }
  std::unique_ptr<Group> split(int, int) override { return make_single_rank(device_); }
  void leave() override {}

 protected:
  void carry_out(const Operation& operation) override {
    if (operation.kind == Kind::kBarrier || operation.output.data_ptr() == operation.input.data_ptr()) return;
    at::Tensor output = operation.output;
    output.view({-1}).copy_(operation.input.view({-1}));
  }

 private:
  at::Device device_;
};

}  // namespace

std::unique_ptr<Group> make_single_rank(at::Device device) { return std::make_unique<SingleRank>(device); }

}  // namespace phalanx::engine::comm
