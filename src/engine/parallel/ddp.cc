#include "engine/parallel/ddp.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>

#include "engine/comm/fingerprint.h"

namespace engine::parallel {

namespace autograd = torch::autograd;

struct Ddp::State {
  std::vector<Bucket>& buckets;
  comm::Group& group;
  // shared_ptr<Node> up to torch 2.6, intrusive_ptr<Node> later. A parameter itself holds its accumulator only weakly.
  using Accumulator = decltype(autograd::impl::grad_accumulator(std::declval<at::Tensor&>()));
  std::vector<Accumulator> accumulators;

  bool reduce = false;
  std::vector<size_t> missing;  // gradients of each bucket that are not final yet
  size_t next = 0;              // first bucket whose all-reduce has not started
  std::vector<std::unique_ptr<comm::Pending>> running;

  void arm(bool with_reduce) {
    reduce = with_reduce;
    next = 0;
    for (size_t b = 0; b < buckets.size(); ++b) missing[b] = buckets[b].slots.size();
  }
  void start_next() {
    Bucket& bucket = buckets[next++];
    bucket.grads.div_(group.world());  // before the sum, as PyTorch does: no overflow in short types, and equal rounding
    running.push_back(group.start_all_reduce(bucket.grads, comm::Reduction::kSum, fmt::format("grads bucket {}", next - 1)));
  }
  void gradient_final(size_t b) {
    if (!reduce || missing[b] == 0) return;
    --missing[b];
    while (next < buckets.size() && missing[next] == 0) start_next();
  }
  void flush() {
    if (!reduce) return;
    while (next < buckets.size()) start_next();
    for (auto& one : running) one->wait();
    running.clear();
    reduce = false;
  }
};

namespace {

struct FinalHook final : autograd::FunctionPostHook {
  explicit FinalHook(std::function<void()> call) : call_(std::move(call)) {}
  autograd::variable_list operator()(const autograd::variable_list& outputs, const autograd::variable_list&) override {
    call_();
    return outputs;
  }
  std::function<void()> call_;
};

}  // namespace

Ddp::Ddp(std::vector<Bucket>& buckets, comm::Group& group) : state_(new State{buckets, group, {}, false, {}, 0, {}}) {
  state_->missing.resize(buckets.size());
  if (group.world() == 1) return;  // nothing to hear
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (Slot& slot : buckets[b].slots) {
      auto accumulator = autograd::impl::grad_accumulator(slot.param);
      std::weak_ptr<State> weak = state_;
      accumulator->add_post_hook(std::make_unique<FinalHook>([weak, b] {
        if (auto state = weak.lock()) state->gradient_final(b);
      }));
      state_->accumulators.push_back(std::move(accumulator));
    }
  }
}

Ddp::~Ddp() = default;

base::Status Ddp::start_equal() {
  comm::Fingerprint shape;
  for (const Bucket& bucket : state_->buckets)
    for (const Slot& slot : bucket.slots) {
      shape.add(slot.name);
      for (int64_t size : slot.param.sizes()) shape.add(size);
      shape.add(static_cast<int64_t>(slot.param.scalar_type()));
    }
  TRY(comm::require_same(state_->group, "the model (names and shapes of its parameters)", shape.value()));
  for (Bucket& bucket : state_->buckets) state_->group.broadcast(bucket.params, 0, "parameters at the start");
  return base::ok();
}

void Ddp::backward(const at::Tensor& loss, bool reduce) {
  state_->arm(reduce && state_->group.world() > 1);
  loss.backward();
  state_->flush();
}

}  // namespace engine::parallel
