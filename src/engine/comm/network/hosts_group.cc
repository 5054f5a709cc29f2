#include "engine/comm/network/hosts_group.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <stdexcept>

#include "base/text.h"
#include "engine/comm/in_store.h"
#include "engine/comm/network/gloo_group.h"
#include "engine/comm/queued_group.h"
#include "engine/comm/shm/arithmetic.h"

namespace phalanx::engine::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Up to here (bytes of the larger tensor) only the first ranks of the hosts talk to each other, about all of it: the fewest messages.
constexpr size_t kSmallBytes = 64 << 10;
constexpr int64_t kChunkBytes = 4 << 20;  // of a large all-reduce

bool is_short(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }
// What partial sums are kept in.
at::ScalarType wide(at::ScalarType type) { return is_short(type) ? at::kFloat : type; }

void convert(const at::Tensor& from, const at::Tensor& to) {
  reduce_rows({Reduction::kSum, from.scalar_type(), to.scalar_type()}, {from.data_ptr()}, {to.data_ptr()}, from.numel());
}

// A copy in what partial sums are kept in.
at::Tensor widened(const at::Tensor& tensor) {
  at::Tensor copy = at::empty({tensor.numel()}, at::TensorOptions().dtype(wide(tensor.scalar_type())));
  convert(tensor, copy);
  return copy;
}

class HostsGroup final : public InStore<QueuedGroup> {
 public:
  HostsGroup(StoreHandle store, std::unique_ptr<Group> local, std::unique_ptr<Group> column, Place place, const GroupOptions& options)
      : InStore(std::move(store), std::move(place), options, Runs::kInThread, options),
        local_(std::move(local)),
        column_(std::move(column)) {}
  ~HostsGroup() override { stop_thread(); }

  std::string describe() const override {
    return fmt::format("shared memory of {} ranks on each of {} hosts, {}", local_->world(), column_->world(), column_->describe());
  }
  bool ordered_sums() const override { return true; }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override {
    at::Tensor made;
    in_order([&] { made = local_->window(elements, dtype); });  // the host's ranks may be in the middle of an operation
    return made;
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
    } catch (const std::exception& failure) { fail_within(say(operation), failure); }
  }

 private:
  int hosts() const { return column_->world(); }
  bool speaks() const { return local_->rank() == 0; }
  // A host's share of a tensor that has a piece for each rank.
  at::Tensor of_host(const at::Tensor& pieces, int host) const {
    const int64_t share = pieces.numel() / hosts();
    return pieces.narrow(0, share * host, share);
  }

  void reduce_scatter_now(const at::Tensor& output, const at::Tensor& input, const std::string& label) {
    if (input.nbytes() <= kSmallBytes) {
      const at::Tensor sums = widened(input);
      sum_over_all(sums, Reduction::kSum, label);
      return convert(sums.narrow(0, rank() * output.numel(), output.numel()), output);
    }
    const int64_t piece = output.numel();
    at::Tensor partial = at::empty({piece * hosts()}, at::TensorOptions().dtype(wide(input.scalar_type())));
    for (int host = 0; host < hosts(); ++host) local_->reduce_scatter(of_host(partial, host), of_host(input, host), label);
    if (output.scalar_type() == partial.scalar_type()) return column_->reduce_scatter(output, partial, label);
    at::Tensor own = of_host(partial, column_->rank());
    column_->reduce_scatter(own, partial, label);
    convert(own, output);
  }

  void all_gather_now(const at::Tensor& output, const at::Tensor& input, const std::string& label) {
    if (output.nbytes() <= kSmallBytes) {
      const at::Tensor here = of_host(output, column_->rank());
      local_->all_gather(here, input, label);
      if (speaks()) column_->all_gather(output, here, label);
      return local_->broadcast(output, 0, label);
    }
    at::Tensor column = at::empty({input.numel() * hosts()}, input.options());
    column_->all_gather(column, input, label);
    for (int host = 0; host < hosts(); ++host) local_->all_gather(of_host(output, host), of_host(column, host), label);
  }

  void all_reduce_now(const Operation& operation) {
    const at::Tensor tensor = operation.input.view({-1});
    const int64_t piece = tensor.numel() / world(), even = piece * world();
    if (operation.reduction == Reduction::kMax || tensor.nbytes() <= kSmallBytes)
      return all_reduce_small(tensor, operation.reduction, operation.label);
    if (is_short(tensor.scalar_type())) {
      at::Tensor sums = at::empty({piece}, tensor.options());
      reduce_scatter_now(sums, tensor.narrow(0, 0, even), operation.label);
      all_gather_now(tensor.narrow(0, 0, even), sums, operation.label);
    } else {
      all_reduce_chunks(tensor.narrow(0, 0, even), operation.label);
    }
    if (even < tensor.numel()) all_reduce_small(tensor.narrow(0, even, tensor.numel() - even), operation.reduction, operation.label);
  }

  // A rank sums its part of a chunk over its host, then its column does over the hosts; what lies between stays in the cache.
  void all_reduce_chunks(const at::Tensor& tensor, const std::string& label) {
    const auto size = static_cast<int64_t>(tensor.element_size());
    const int64_t here = local_->world(), chunk = std::max<int64_t>(kChunkBytes / size / here, 1) * here;
    for (int64_t begin = 0; begin < tensor.numel(); begin += chunk) {
      const at::Tensor part = tensor.narrow(0, begin, std::min(chunk, tensor.numel() - begin));
      if (!scratch_.defined() || scratch_.scalar_type() != tensor.scalar_type() || scratch_.numel() < part.numel() / here)
        scratch_ = at::empty({part.numel() / here}, tensor.options());
      const at::Tensor own = scratch_.narrow(0, 0, part.numel() / here);
      local_->reduce_scatter(own, part, label);
      column_->all_reduce(own, Reduction::kSum, label);
      local_->all_gather(part, own, label);
    }
  }

  void all_reduce_small(const at::Tensor& tensor, Reduction reduction, const std::string& label) {
    if (!is_short(tensor.scalar_type())) return sum_over_all(tensor, reduction, label);
    const at::Tensor sums = widened(tensor);
    sum_over_all(sums, reduction, label);
    convert(sums, tensor);
  }

  // Inside each host, between the hosts' first ranks, and back.
  void sum_over_all(const at::Tensor& tensor, Reduction reduction, const std::string& label) {
    local_->all_reduce(tensor, reduction, label);
    if (speaks()) column_->all_reduce(tensor, reduction, label);
    local_->broadcast(tensor, 0, label);
  }

  void broadcast_now(const Operation& operation) {
    const int host = operation.root / local_->world(), local = operation.root % local_->world();
    if (local_->rank() == local) column_->broadcast(operation.input, host, operation.label);
    local_->broadcast(operation.input, local, operation.label);
  }

  void barrier_now(const Operation& operation) {
    meet_marked(operation.deadline, [&](steady_clock::time_point end) {
      local_->barrier(operation.label, operation.deadline);
      const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
      column_->barrier(operation.label, std::max(left, milliseconds{1}));
      local_->barrier(operation.label, this->options().timeout);  // not before this host's other columns have been through
    });
  }

  std::unique_ptr<Group> local_, column_;
  at::Tensor scratch_;  // of all_reduce
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

}  // namespace phalanx::engine::comm
