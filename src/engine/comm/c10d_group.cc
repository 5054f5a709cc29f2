#include "engine/comm/c10d_group.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "base/text.h"

namespace engine::comm {
namespace {

// As in torch's own default: long enough for one rank to write a checkpoint while the others wait. Finding a hang sooner
// is the launcher's work.
constexpr std::chrono::minutes kCollectiveTimeout{30};

class Running final : public Pending {
 public:
  Running(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors) : work_(std::move(work)), tensors_(std::move(tensors)) {}
  void wait() override { work_->wait(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::vector<at::Tensor> tensors_;  // kept alive while the operation runs
};

class C10dGroup final : public Group {
 public:
  C10dGroup(StoreHandle store, c10::intrusive_ptr<compat::Backend> backend, at::Device device, std::string description)
      : store_(std::move(store)), backend_(std::move(backend)), device_(device), description_(std::move(description)) {}

  int rank() const override { return backend_->getRank(); }
  int world() const override { return backend_->getSize(); }
  at::Device device() const override { return device_; }
  std::string describe() const override { return description_; }

  std::unique_ptr<Pending> start_sum(at::Tensor tensor) override {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::SUM;
    auto work = backend_->allreduce(tensors, options);
    return std::make_unique<Running>(std::move(work), std::move(tensors));
  }

  void broadcast(at::Tensor tensor, int root) override {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.rootTensor = 0;
    backend_->broadcast(tensors, options)->wait();
  }

  void leave() override {
    sum(at::zeros({1}, at::TensorOptions().device(device_)));  // everyone is here
    // From here on the others only touch the store to say so; its host goes last.
    const int64_t others = world() - 1;
    if (!store_.hosting) {
      if (store_.store->add("left", 1) == others) store_.store->set("all_left", std::vector<uint8_t>{1});
    } else if (others > 0) {
      store_.store->wait({"all_left"}, kCollectiveTimeout);
    }
  }

 private:
  StoreHandle store_;
  c10::intrusive_ptr<compat::Backend> backend_;
  at::Device device_;
  std::string description_;
};

#ifdef PHALANX_GLOO
c10::intrusive_ptr<compat::Backend> make_gloo(const StoreHandle& store, int rank, int world, const std::string& address,
                                              const std::string& interfaces) {
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(kCollectiveTimeout);
  options->threads = 2;
  for (std::string_view name : base::split(interfaces, ','))
    if (!name.empty()) options->devices.push_back(Gloo::createDeviceForInterface(std::string(name)));
  if (options->devices.empty())
    options->devices.push_back(address.empty() ? Gloo::createDefaultDevice() : Gloo::createDeviceForHostname(address));
  return c10::make_intrusive<Gloo>(store.store, rank, world, options);
}
#endif

}  // namespace

std::unique_ptr<Group> make_c10d_group(StoreHandle store, int rank, int world, at::Device device, const std::string& address,
                                       const std::string& interfaces) {
  if (device.is_cuda()) {
#ifdef USE_C10D_NCCL
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store.store, rank, world);
    return std::make_unique<C10dGroup>(std::move(store), std::move(backend), device, "nccl");
#else
    throw std::runtime_error("this phalanx-train was built without NCCL; set device: cpu");
#endif
  }
#ifdef PHALANX_GLOO
  auto backend = make_gloo(store, rank, world, address, interfaces);
  std::string where = !interfaces.empty() ? interfaces : address.empty() ? "the host name's address" : address;
  return std::make_unique<C10dGroup>(std::move(store), std::move(backend), device, fmt::format("gloo on {}", where));
#else
  throw std::runtime_error("this phalanx-train was built without Gloo's headers (Debian: libgloo-dev); it runs on one rank or on GPUs");
#endif
}

}  // namespace engine::comm
