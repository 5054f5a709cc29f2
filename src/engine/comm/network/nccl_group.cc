#include "engine/comm/network/nccl_group.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <stdexcept>

#include "engine/comm/in_store.h"
#include "engine/comm/operation.h"

namespace phalanx::engine::comm {

#ifdef USE_C10D_NCCL
namespace {

using Nccl = c10d::ProcessGroupNCCL;

class Running final : public Pending {
 public:
  Running(c10::intrusive_ptr<c10d::Work> work, Operation operation) : work_(std::move(work)), operation_(std::move(operation)) {}
  void wait() override {
    try {
      work_->wait();
    } catch (const std::exception& failure) { fail_within(say(operation_), failure); }
  }
  bool begun() const override { return true; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  Operation operation_;  // keeps the tensors alive while the operation runs
};

class NcclGroup final : public InStore<Group> {
 public:
  NcclGroup(StoreHandle store, c10::intrusive_ptr<Nccl> backend, Place place, const GroupOptions& options)
      : InStore(std::move(store), std::move(place), options), backend_(std::move(backend)) {}

  std::string describe() const override { return fmt::format("nccl between {} ranks", world()); }
  bool ordered_sums() const override { return false; }

  std::unique_ptr<Pending> start_all_reduce(at::Tensor tensor, Reduction reduction, std::string_view label) override {
    Operation operation = begin(Kind::kAllReduce, tensor, tensor, label);
    operation.reduction = reduction;
    std::vector<at::Tensor> tensors{tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    return std::make_unique<Running>(backend_->allreduce(tensors, options), std::move(operation));
  }
  std::unique_ptr<Pending> start_reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) override {
    Operation operation = begin(Kind::kReduceScatter, output, input, label);
    if (output.scalar_type() != input.scalar_type())
      throw std::invalid_argument(fmt::format("{}: NCCL does not accumulate in a wider type", say(operation)));
    at::Tensor out = output.view({-1}), in = input.view({-1});
    return std::make_unique<Running>(backend_->_reduce_scatter_base(out, in, c10d::ReduceScatterOptions()), std::move(operation));
  }
  std::unique_ptr<Pending> start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) override {
    Operation operation = begin(Kind::kAllGather, output, input, label);
    at::Tensor out = output.view({-1}), in = input.view({-1});
    return std::make_unique<Running>(backend_->_allgather_base(out, in, c10d::AllgatherOptions()), std::move(operation));
  }
  std::unique_ptr<Pending> start_broadcast(at::Tensor tensor, int root, std::string_view label) override {
    Operation operation = begin(Kind::kBroadcast, tensor, tensor, label, root);
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.rootTensor = 0;
    return std::make_unique<Running>(backend_->broadcast(tensors, options), std::move(operation));
  }

  // Through the store alone: a rank that does not come would leave a kernel behind that nothing ends.
  void barrier(std::string_view name, std::chrono::milliseconds deadline) override {
    try {
      meet_marked(deadline, [&](auto) {
        const std::string count = fmt::format("barrier/{}/count", barriers()), go = fmt::format("barrier/{}/go", barriers());
        if (store().add(count, 1) == world()) store().set(go, std::vector<uint8_t>{1});
        store().wait({go}, deadline);
      });
    } catch (const std::exception& failure) { fail_within(fmt::format("barrier ({})", name), failure); }
  }

  at::Tensor window(int64_t elements, at::ScalarType dtype) override {
    return at::zeros({elements}, at::TensorOptions().dtype(dtype).device(device()));
  }

 private:
  void close() override {
#if PHALANX_TORCH_SINCE(2, 6)
    backend_->shutdown();  // it warns at its end otherwise
#endif
  }
  Operation begin(Kind kind, const at::Tensor& output, const at::Tensor& input, std::string_view label, int root = -1) {
    Operation operation;
    operation.kind = kind;
    operation.root = root;
    operation.sequence = ++sequence_;
    operation.label = label;
    operation.output = output;
    operation.input = input;
    check_call(operation, world(), device());
    return operation;
  }

  c10::intrusive_ptr<Nccl> backend_;
  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Group> make_nccl_group(StoreHandle store, const Place& place, const GroupOptions& options) {
  auto nccl = Nccl::Options::create();
  nccl->timeout = options.timeout;
  auto backend = c10::make_intrusive<Nccl>(store.store, place.rank, place.world, nccl);
  return std::make_unique<NcclGroup>(std::move(store), std::move(backend), place, options);
}

#else

std::unique_ptr<Group> make_nccl_group(StoreHandle, const Place&, const GroupOptions&) {
  throw std::runtime_error("this phalanx-train was built without NCCL; set device: cpu");
}

#endif

}  // namespace phalanx::engine::comm
