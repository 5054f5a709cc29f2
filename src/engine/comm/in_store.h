// What the groups whose ranks met in a store have in common, whatever carries their bytes: where they stand, how they split and how
// they leave. `Base` is Group, or QueuedGroup for groups that carry out one operation after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/comm/make_group.h"
#include "engine/comm/store_marks.h"
#include "engine/comm/subgroup.h"

namespace phalanx::engine::comm {

template <class Base>
class InStore : public Base {
 public:
  // `base`: what the constructor of Base takes.
  template <class... Arguments>
  InStore(StoreHandle store, Place place, const GroupOptions& options, Arguments&&... base)
      : Base(std::forward<Arguments>(base)...), store_(std::move(store)), place_(std::move(place)), options_(options) {}

  int rank() const final { return place_.rank; }
  int world() const final { return place_.world; }
  at::Device device() const final { return place_.device; }
  // No process can address another one's tensors, unless a group knows better.
  std::vector<at::Tensor> peers(const at::Tensor&) override { return {}; }
  std::optional<at::Tensor> common(int64_t, at::ScalarType) override { return std::nullopt; }
  std::unique_ptr<Group> split(int color, int key) final { return split_by_store(*this, store_, place_, options_, ++splits_, color, key); }
  void leave() final {
    this->barrier("leave", options_.timeout);
    close();
    leave_store(store_, world(), options_.timeout);
  }

 protected:
  virtual void close() {}  // when every rank leaves
  // `meet(end)` is a barrier of all ranks, which throws at `end`, `deadline` from now, or before when a rank is gone. After `end` the marks
  // that each has left in the store name those that never came.
  template <class Meet>
  void meet_marked(std::chrono::milliseconds deadline, const Meet& meet) {
    StoreMarks marks(*store_.store, "barrier", ++barriers_);
    marks.come(rank());
    const auto end = std::chrono::steady_clock::now() + deadline;
    try {
      meet(end);
    } catch (const std::exception&) {
      if (std::chrono::steady_clock::now() < end) throw;
      const std::vector<int> absent = marks.absent(world());
      if (absent.empty()) throw;
      throw std::runtime_error(never_came(absent, deadline));
    }
    marks.forget_before(rank());
  }
  uint64_t barriers() const { return barriers_; }
  c10d::Store& store() const { return *store_.store; }
  const Place& place() const { return place_; }
  const GroupOptions& options() const { return options_; }

 private:
  StoreHandle store_;
  Place place_;
  GroupOptions options_;
  int splits_ = 0;
  uint64_t barriers_ = 0;
};

}  // namespace phalanx::engine::comm
