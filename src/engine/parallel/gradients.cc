#include "engine/parallel/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "engine/parallel/accumulate_hook.h"

namespace phalanx::engine::parallel {
namespace {

// Two: one is being filled while the other one is reduced.
constexpr size_t kCarriers = 2;

struct SlotState {
  int expected = 1;  // times its gradient comes in one backward
  int came = 0;
  bool filled = false;  // its place in the flat buffer holds this step's gradient
};

struct UnitState {
  std::vector<SlotState> slots;
  size_t missing = 0;
  bool left = false;    // its reduction has started in this backward
  bool summed = false;  // `sum` holds something of this step
  at::Tensor flat;      // kAll, kSlice: [elements], a window
  at::Tensor sum;       // what slice() and whole() show; of its own where micro-batches are reduced one by one
};

struct Carrier {
  at::Tensor window;  // as long as the longest unit
  std::optional<InOrder::Ticket> busy;
};

}  // namespace

struct Gradients::State {
  const std::vector<Unit>& units;
  std::vector<at::Tensor> params;
  std::vector<std::string> names;
  comm::Group& group;
  InOrder& queue;
  GradientRules rules;
  std::function<void(size_t)> unit_done;

  std::vector<std::shared_ptr<void>> hooks;
  std::vector<UnitState> state;
  std::array<Carrier, kCarriers> carriers;
  size_t next_carrier = 0;
  bool complete = false;  // the last micro-batch of the step is in
  bool armed = false, reducing = false, learning = false, learned = false;
  size_t next = 0;                         // first unit whose reduction has not started
  std::vector<InOrder::Ticket> tickets{};  // of this backward's reductions
  size_t overlapped = 0;                   // of them, those that had begun when autograd was done

  void allocate();
  void arm(bool last);
  void came(size_t u, size_t s);
  void start_complete();
  void start(size_t u);
  void carry(size_t u);
  void finish();
  size_t count_begun() const;

  Slice own(size_t u) const { return slice_of(units[u], group.rank(), group.world()); }
  at::Tensor own(size_t u, const at::Tensor& flat) const { return flat.narrow(0, own(u).begin, own(u).numel); }
  at::Tensor place(size_t u, size_t s, const at::Tensor& flat) const {
    const Slot& slot = units[u].slots[s];
    return flat.narrow(0, slot.offset, slot.numel).view(params[slot.param].sizes());
  }
  std::string label(size_t u) const { return fmt::format("gradients of {}", units[u].name); }
};

void Gradients::State::allocate() {
  state.resize(units.size());
  int64_t longest = 0;
  const at::TensorOptions options = at::TensorOptions().dtype(rules.dtype).device(group.device());
  for (size_t u = 0; u < units.size(); ++u) {
    UnitState& unit = state[u];
    unit.slots.resize(units[u].slots.size());
    longest = std::max(longest, units[u].elements);
    if (rules.keep == Keep::kDropped) {
      unit.sum = at::zeros({own(u).numel}, options);
      continue;
    }
    unit.flat = group.window(units[u].elements, rules.dtype);
    if (!rules.each_micro_batch) unit.sum = rules.keep == Keep::kAll ? unit.flat : own(u, unit.flat);
    else unit.sum = at::zeros({rules.keep == Keep::kAll ? units[u].elements : own(u).numel}, options);
  }
  if (rules.keep != Keep::kDropped) return;
  for (Carrier& carrier : carriers) carrier.window = group.window(longest, rules.dtype);
}

void Gradients::State::arm(bool last) {
  if (complete) throw std::logic_error("backward() was called after the last micro-batch of a step; call step() or clear() first");
  armed = true;
  reducing = last || rules.each_micro_batch || rules.keep == Keep::kDropped;
  learning = rules.learn_repeats && !learned;
  next = overlapped = 0;
  tickets.clear();
  for (size_t u = 0; u < units.size(); ++u) {
    state[u].missing = state[u].slots.size();
    state[u].left = false;
    for (SlotState& slot : state[u].slots) {
      slot.came = 0;
      if (rules.each_micro_batch) slot.filled = false;
    }
  }
  for (at::Tensor& param : params) param.mutable_grad() = at::Tensor();
}

// Behind a parameter's AccumulateGrad. Gradients that come from elsewhere than our backward() are not ours.
void Gradients::State::came(size_t u, size_t s) {
  if (!armed) return;
  UnitState& unit = state[u];
  SlotState& slot = unit.slots[s];
  at::Tensor& param = params[units[u].slots[s].param];
  // A node may also be told that there is nothing: a function that was given the parameter and returned no gradient for it.
  const bool something = param.grad().defined();
  if (unit.left && !something) return;
  if (unit.left)
    throw std::runtime_error(
        fmt::format("the gradient of {} was computed again after it had been reduced: the parameter is used both inside and outside "
                    "activation checkpointing, or in two checkpointed parts. Set repeated_gradients, or checkpoint other parts",
                    names[units[u].slots[s].param]));
  ++slot.came;
  if (rules.keep != Keep::kDropped && something) {
    at::NoGradGuard no_grad;
    at::Tensor to = place(u, s, unit.flat);
    if (slot.filled) to.add_(param.grad());
    else to.copy_(param.grad());
    slot.filled = true;
    param.mutable_grad() = at::Tensor();
  }
  if (!reducing || learning || slot.came != slot.expected) return;
  if (--unit.missing == 0) start_complete();
}

void Gradients::State::start_complete() {
  while (next < units.size() && state[next].missing == 0) start(next++);
}

void Gradients::State::start(size_t u) {
  at::NoGradGuard no_grad;
  UnitState& unit = state[u];
  unit.left = true;
  if (rules.keep == Keep::kDropped) return carry(u);
  for (size_t s = 0; s < unit.slots.size(); ++s)
    if (!unit.slots[s].filled) place(u, s, unit.flat).zero_();
  unit_done(u);
  if (rules.mean && group.world() > 1) unit.flat.div_(group.world());  // before the sum, as PyTorch does: no overflow in short types
  auto operation = rules.keep == Keep::kAll ? group.start_all_reduce(unit.flat, comm::Reduction::kSum, label(u))
                                            : group.start_reduce_scatter(own(u, unit.flat), unit.flat, label(u));
  tickets.push_back(queue.push(std::move(operation), [this, u] {
    UnitState& done = state[u];
    if (!rules.each_micro_batch) return;
    at::NoGradGuard quiet;
    const at::Tensor got = rules.keep == Keep::kAll ? done.flat : own(u, done.flat);
    if (done.summed) done.sum.add_(got);
    else done.sum.copy_(got);
    done.summed = true;
  }));
}

// Stages 2 and 3: the gradients leave autograd's tensors for a carrier, which is free again when its reduction is done.
void Gradients::State::carry(size_t u) {
  Carrier& carrier = carriers[next_carrier++ % kCarriers];
  if (carrier.busy) queue.finish(*carrier.busy);
  at::Tensor flat = carrier.window.narrow(0, 0, units[u].elements);
  int64_t filled = 0;
  for (size_t s = 0; s < state[u].slots.size(); ++s) {
    const Slot& slot = units[u].slots[s];
    at::Tensor& param = params[slot.param];
    if (slot.offset > filled) flat.narrow(0, filled, slot.offset - filled).zero_();  // padding: another unit left something there
    if (param.grad().defined()) place(u, s, flat).copy_(param.grad());
    else place(u, s, flat).zero_();
    param.mutable_grad() = at::Tensor();
    filled = slot.offset + slot.numel;
  }
  if (units[u].elements > filled) flat.narrow(0, filled, units[u].elements - filled).zero_();
  unit_done(u);
  if (rules.mean && group.world() > 1) flat.div_(group.world());
  at::Tensor piece = own(u, flat);
  carrier.busy = queue.push(group.start_reduce_scatter(piece, flat, label(u)), [this, u, piece, &carrier] {
    at::NoGradGuard quiet;
    carrier.busy.reset();
    UnitState& done = state[u];
    if (done.summed) done.sum.add_(piece);
    else done.sum.copy_(piece);
    done.summed = true;
  });
  tickets.push_back(*carrier.busy);
}

void Gradients::State::finish() {
  armed = false;
  if (learning && reducing) {
    for (UnitState& unit : state)
      for (SlotState& slot : unit.slots) slot.expected = std::max(1, slot.came);
    learned = true;
  }
  if (!reducing) return;
  while (next < units.size()) start(next++);
  queue.finish_all();
  if (rules.keep != Keep::kAll) return;
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t s = 0; s < state[u].slots.size(); ++s) params[units[u].slots[s].param].mutable_grad() = place(u, s, state[u].sum);
}

size_t Gradients::State::count_begun() const {
  return static_cast<size_t>(std::count_if(tickets.begin(), tickets.end(), [this](InOrder::Ticket ticket) { return queue.begun(ticket); }));
}

Gradients::Gradients(const std::vector<Unit>& units, std::vector<at::Tensor> params, std::vector<std::string> names, comm::Group& group,
                     InOrder& queue, const GradientRules& rules, std::function<void(size_t)> unit_done)
    : state_(new State{units, std::move(params), std::move(names), group, queue, rules, std::move(unit_done), {}, {}, {}}) {
  state_->allocate();
  std::weak_ptr<State> weak = state_;
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t s = 0; s < units[u].slots.size(); ++s)
      state_->hooks.push_back(on_gradient(state_->params[units[u].slots[s].param], [weak, u, s] {
        if (auto state = weak.lock()) state->came(u, s);
      }));
}

Gradients::~Gradients() = default;

void Gradients::backward(const at::Tensor& loss, bool last) {
  state_->arm(last);
  try {
    if (loss.defined()) loss.backward();
    state_->overlapped = state_->count_begun();
  } catch (...) {
    state_->armed = false;
    throw;
  }
  state_->finish();
  state_->complete = last;
}

void Gradients::clear() {
  state_->complete = false;
  for (UnitState& unit : state_->state) {
    unit.summed = false;
    for (SlotState& slot : unit.slots) slot.filled = false;
  }
  for (at::Tensor& param : state_->params) param.mutable_grad() = at::Tensor();
}

at::Tensor Gradients::slice(size_t unit) const {
  const at::Tensor& sum = state_->state[unit].sum;
  return state_->rules.keep == Keep::kAll ? state_->own(unit, sum) : sum;
}

at::Tensor Gradients::whole(size_t unit) const { return state_->state[unit].sum; }

int64_t Gradients::held_bytes() const {
  int64_t bytes = 0;
  for (const UnitState& unit : state_->state) {
    if (unit.flat.defined()) bytes += static_cast<int64_t>(unit.flat.nbytes());
    if (!unit.flat.defined() || state_->rules.each_micro_batch) bytes += static_cast<int64_t>(unit.sum.nbytes());
  }
  return bytes;
}

int64_t Gradients::carrier_bytes() const {
  int64_t bytes = 0;
  for (const Carrier& carrier : state_->carriers)
    if (carrier.window.defined()) bytes += static_cast<int64_t>(carrier.window.nbytes());
  return bytes;
}

size_t Gradients::overlapped() const { return state_->overlapped; }

}  // namespace phalanx::engine::parallel
