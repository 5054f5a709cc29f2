#include "engine/comm/hosts_group.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <stdexcept>

#include "base/text.h"
#include "engine/comm/arithmetic.h"
#include "engine/comm/front.h"
#include "engine/comm/gloo_group.h"
#include "engine/comm/part.h"
#include "engine/comm/store_marks.h"

namespace engine::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Up to here every column sums all of it: fewer messages one after the other.
constexpr size_t kSmallBytes = 16 << 10;

bool is_short(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }
// What partial sums are kept in.
at::ScalarType wide(at::ScalarType type) { return is_short(type) ? at::kFloat : type; }

void convert(const at::Tensor& from, const at::Tensor& to) {
  reduce_rows({Reduction::kSum, from.scalar_type(), to.scalar_type()}, {from.data_ptr()}, {to.data_ptr()}, from.numel());
}

class HostsGroup final : public Front {
 public:
  HostsGroup(StoreHandle store, std::unique_ptr<Group> local, std::unique_ptr<Group> column, Place place, const GroupOptions& options)
      : Front(Runs::kInThread, options),
        store_(std::move(store)),
        local_(std::move(local)),
        column_(std::move(column)),
        place_(std::move(place)),
        options_(options) {}
  ~HostsGroup() override { stop_thread(); }

  int rank() const override { return place_.rank; }
  int world() const override { return place_.world; }
  at::Device device() const override { return at::kCPU; }
  std::string describe() const override {
    return fmt::format("shared memory of {} ranks on each of {} hosts, {}", local_->world(), column_->world(), column_->describe());
  }
  bool ordered_sums() const override { return true; }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override {
    at::Tensor made;
    in_order([&] { made = local_->window(elements, dtype); });  // the host's ranks may be in the middle of an operation
    return made;
  }
  std::vector<at::Tensor> peers(const at::Tensor&) override { return {}; }
  std::optional<at::Tensor> common(int64_t, at::ScalarType) override { return std::nullopt; }
  std::unique_ptr<Group> split(int color, int key) override {
    return split_by_store(*this, store_, place_, options_, ++splits_, color, key);
  }
  void leave() override {
    barrier("leave", options_.timeout);
    leave_store(store_, world(), options_.timeout);
  }

 protected:
  void carry_out(const Operation& operation) override {
    try {
      switch (operation.kind) {
        case Kind::kAllReduce: return all_reduce_now(operation);
        case Kind::kReduceScatter: return reduce_scatter_now(operation.output.view({-1}), operation.input.view({-1}), operation.label);
        case Kind::kAllGather: return all_gather_now(operation.output.view({-1}), operation.input.view({-1}), operation.label);
        case Kind::kBroadcast: return broadcast_now(operation);
        case Kind::kBarrier: return barrier_now(operation);
      }
    } catch (const std::exception& failure) { throw std::runtime_error(fmt::format("{}: {}", say(operation), reason(failure))); }
  }

 private:
  int hosts() const { return column_->world(); }
  // A host's share of a tensor that has a piece for each rank.
  at::Tensor of_host(const at::Tensor& pieces, int host) const {
    const int64_t share = pieces.numel() / hosts();
    return pieces.narrow(0, share * host, share);
  }

  void reduce_scatter_now(const at::Tensor& output, const at::Tensor& input, const std::string& label) {
    const int64_t piece = output.numel();
    at::Tensor partial = at::empty({piece * hosts()}, at::TensorOptions().dtype(wide(input.scalar_type())));
    for (int host = 0; host < hosts(); ++host) local_->reduce_scatter(of_host(partial, host), of_host(input, host), label);
    if (output.scalar_type() == partial.scalar_type()) return column_->reduce_scatter(output, partial, label);
    at::Tensor own = of_host(partial, column_->rank());
    column_->reduce_scatter(own, partial, label);
    convert(own, output);
  }

  void all_gather_now(const at::Tensor& output, const at::Tensor& input, const std::string& label) {
    at::Tensor column = at::empty({input.numel() * hosts()}, input.options());
    column_->all_gather(column, input, label);
    for (int host = 0; host < hosts(); ++host) local_->all_gather(of_host(output, host), of_host(column, host), label);
  }

  void all_reduce_now(const Operation& operation) {
    const at::Tensor tensor = operation.input.view({-1});
    const int64_t piece = tensor.numel() / world(), even = piece * world();
    if (operation.reduction == Reduction::kMax || tensor.nbytes() <= kSmallBytes)
      return all_reduce_small(tensor, operation.reduction, operation.label);
    at::Tensor sums = at::empty({piece}, tensor.options());
    reduce_scatter_now(sums, tensor.narrow(0, 0, even), operation.label);
    all_gather_now(tensor.narrow(0, 0, even), sums, operation.label);
    if (even < tensor.numel()) all_reduce_small(tensor.narrow(0, even, tensor.numel() - even), operation.reduction, operation.label);
  }

  void all_reduce_small(const at::Tensor& tensor, Reduction reduction, const std::string& label) {
    at::Tensor sums = tensor;
    if (is_short(tensor.scalar_type())) {
      sums = at::empty({tensor.numel()}, at::TensorOptions().dtype(at::kFloat));
      convert(tensor, sums);
    }
    local_->all_reduce(sums, reduction, label);
    column_->all_reduce(sums, reduction, label);
    if (is_short(tensor.scalar_type())) convert(sums, tensor);
  }

  void broadcast_now(const Operation& operation) {
    const int host = operation.root / local_->world(), local = operation.root % local_->world();
    if (local_->rank() == local) column_->broadcast(operation.input, host, operation.label);
    local_->broadcast(operation.input, local, operation.label);
  }

  void barrier_now(const Operation& operation) {
    StoreMarks marks(*store_.store, "barrier", ++barriers_);
    marks.come(rank());
    const auto end = steady_clock::now() + operation.deadline;
    try {
      local_->barrier(operation.label, operation.deadline);
      const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
      column_->barrier(operation.label, std::max(left, milliseconds{1}));
      local_->barrier(operation.label, options_.timeout);  // not before this host's other columns have been through
    } catch (const std::exception& failure) {
      const std::vector<int> absent = marks.absent(world());
      if (absent.empty()) throw;
      throw std::runtime_error(never_came(absent, operation.deadline));
    }
    marks.forget_before(rank());
  }

  StoreHandle store_;
  std::unique_ptr<Group> local_, column_;
  Place place_;
  GroupOptions options_;
  int splits_ = 0;
  uint64_t barriers_ = 0;
};

}  // namespace

std::unique_ptr<Group> make_hosts_group(StoreHandle store, SharedHost host, int local_ranks, const Place& place,
                                        const GroupOptions& options) {
  GroupOptions inner = options;
  inner.flight = nullptr;  // the ring has what the engine asks for, not what that is made of
  auto local = make_shm_group(StoreHandle{store.store, false, true}, std::move(host), inner);
  Place in_column = place;
  in_column.rank = place.rank / local_ranks;
  in_column.world = place.world / local_ranks;
  const std::string prefix = fmt::format("column/{}", place.rank % local_ranks);
  auto column = make_gloo_group({c10::make_intrusive<c10d::PrefixStore>(prefix, store.store), false, true}, in_column, inner);
  return std::make_unique<HostsGroup>(std::move(store), std::move(local), std::move(column), place, options);
}

}  // namespace engine::comm
