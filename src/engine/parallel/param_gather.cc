#include "engine/parallel/param_gather.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace phalanx::engine::parallel {

struct ParamGather::ShardedUnit final : Touchable {
  ShardedUnit(ParamGather* residency, std::string unit_name, int64_t elements, at::Tensor own)
      : home(residency), name(std::move(unit_name)), shard(std::move(own)), storage(elements, shard.options(), this) {}
  ParamGather* home;
  std::string name;
  at::Tensor shard;
  LiveStorage storage;
  std::optional<InOrder::Ticket> gathering;
};

namespace {

template <typename ShardedUnit>
void collect(const at::Tensor& tensor, std::vector<ShardedUnit*>& found) {
  auto* one = static_cast<ShardedUnit*>(LiveStorage::owner_of(tensor));
  if (one && std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
}

}  // namespace

std::unique_ptr<at::ObserverContext> announce(const at::RecordFunction& operation) {
  std::vector<ParamGather::ShardedUnit*> found;
  for (const c10::IValue& input : operation.inputs()) {
    if (input.isTensor()) collect(input.toTensor(), found);
    else if (input.isTensorList())
      for (const at::Tensor& tensor : input.toTensorVector()) collect(tensor, found);
    else if (input.isOptionalTensorList())
      for (const c10::optional<at::Tensor>& tensor : input.toOptionalTensorVector())
        if (tensor) collect(*tensor, found);
  }
  // Almost always one unit, or none; an operation may also use parts of two models.
  while (!found.empty()) {
    ParamGather* home = found.front()->home;
    auto others = std::stable_partition(found.begin(), found.end(), [&](auto* one) { return one->home == home; });
    home->touch_or_fail({found.begin(), others});
    found.erase(found.begin(), others);
  }
  return nullptr;
}

ParamGather::ParamGather(comm::Group& group, InOrder& queue, int live_units, bool prefetch)
    : group_(group), queue_(queue), live_limit_(static_cast<size_t>(std::max(1, live_units))), prefetch_(prefetch) {
  observer_ = at::addThreadLocalCallback(at::RecordFunctionCallback(announce).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

ParamGather::~ParamGather() { at::removeCallback(observer_); }

size_t ParamGather::add(std::string name, int64_t elements, at::Tensor shard) {
  units_.push_back(std::make_unique<ShardedUnit>(this, std::move(name), elements, std::move(shard)));
  return units_.size() - 1;
}

const at::Tensor& ParamGather::tensor(size_t unit) const { return units_[unit]->storage.tensor(); }

void ParamGather::touch(const std::vector<ShardedUnit*>& ones) {
  const bool latest = ones.size() == 1 && !live_.empty() && live_.back() == ones[0] && ones[0]->storage.present() && !ones[0]->gathering;
  if (latest) return;
  // What follows runs operations of its own, inside another one's announcement.
  at::DisableRecordFunctionGuard not_announced;
  at::NoGradGuard no_grad;
  for (ShardedUnit* one : ones) {
    auto place = std::find(live_.begin(), live_.end(), one);
    if (place == live_.end()) {
      make_room(1, ones);
      start_gather(*one);
    } else {
      live_.erase(place);
      live_.push_back(one);
    }
    if (one->gathering) {
      queue_.finish(*std::exchange(one->gathering, std::nullopt));
      note_use(*one);
    }
  }
}

// The order of first uses is this step's record; where it agrees with the last step's, what came next then is wanted next now.
void ParamGather::note_use(ShardedUnit& one) {
  seen_.push_back(&one);
  const size_t at = seen_.size() - 1;
  on_track_ = on_track_ && at < expected_.size() && expected_[at] == &one;
  if (!on_track_ || !prefetch_ || writing_ || at + 1 >= expected_.size()) return;
  ShardedUnit& next = *expected_[at + 1];
  if (live_limit_ < 2 || std::find(live_.begin(), live_.end(), &next) != live_.end()) return;
  make_room(1, {&one});
  start_gather(next);
}

// torch swallows what an observer throws, and runs the operation. So the failure waits for the next call that may throw, and until
// then the operations get memory to work on, whatever is in it.
void ParamGather::touch_or_fail(const std::vector<ShardedUnit*>& ones) {
  if (!failure_) {
    try {
      return touch(ones);
    } catch (...) { failure_ = std::current_exception(); }
  }
  for (ShardedUnit* one : ones)
    if (!one->storage.present()) one->storage.allocate();
}

void ParamGather::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

void ParamGather::start_gather(ShardedUnit& one) {
  one.storage.allocate();
  live_bytes_ += static_cast<int64_t>(one.storage.memory().nbytes());
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  live_.push_back(&one);
  one.gathering = queue_.push(group_.start_all_gather(one.storage.memory(), one.shard, fmt::format("parameters of {}", one.name)));
}

void ParamGather::make_room(size_t wanted, const std::vector<ShardedUnit*>& keep) {
  while (live_.size() + wanted > live_limit_) {
    auto oldest =
        std::find_if(live_.begin(), live_.end(), [&](ShardedUnit* one) { return std::find(keep.begin(), keep.end(), one) == keep.end(); });
    if (oldest == live_.end()) return;
    drop(**oldest);
  }
}

void ParamGather::drop(ShardedUnit& one) {
  if (one.gathering) queue_.finish(*std::exchange(one.gathering, std::nullopt));
  if (writing_) {
    queue_.finish_all();
    group_.broadcast(one.storage.memory(), 0, fmt::format("initial values of {}", one.name));
    one.shard.copy_(one.storage.memory().narrow(0, group_.rank() * one.shard.numel(), one.shard.numel()));
  }
  live_bytes_ -= static_cast<int64_t>(one.storage.memory().nbytes());
  one.storage.release();
  live_.erase(std::find(live_.begin(), live_.end(), &one));
}

void ParamGather::release(size_t unit) {
  ShardedUnit& one = *units_[unit];
  if (!writing_ && std::find(live_.begin(), live_.end(), &one) != live_.end()) drop(one);
}

void ParamGather::release_all() {
  rethrow();
  at::NoGradGuard no_grad;
  while (!live_.empty()) drop(*live_.front());
}

void ParamGather::end_step() {
  expected_ = std::exchange(seen_, {});
  on_track_ = true;
}

void ParamGather::begin_writing() {
  release_all();
  writing_ = true;
}

void ParamGather::end_writing() {
  release_all();
  writing_ = false;
  seen_.clear();
}

}  // namespace phalanx::engine::parallel
