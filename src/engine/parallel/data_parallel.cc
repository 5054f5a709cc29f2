#include "engine/parallel/data_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "engine/optim/norm.h"
#include "engine/require.h"

namespace phalanx::engine::parallel {
namespace {

constexpr std::chrono::minutes kStepTimeout{30};

}  // namespace

DataParallel::~DataParallel() {
  if (!param_gather_) return;
  gradients_.reset();
  at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard not_announced;  // else each parameter's unit would be gathered, to be thrown away
  const auto leave_empty = [](const std::vector<Unit>& units, std::vector<Param>& params) {
    for (const Unit& unit : units)
      for (const Slot& slot : unit.slots)
        if (unit.sharded) params[slot.param].value.set_data(at::zeros({0}, params[slot.param].value.options().requires_grad(false)));
  };
  leave_empty(units_, params_);
  leave_empty(frozen_.units, frozen_.params);
}

void DataParallel::backward(const at::Tensor& loss, bool last) {
  check();
  gradients_->backward(loss, last);
  check();
}

void DataParallel::check() const {
  if (param_gather_) param_gather_->rethrow();
}

void DataParallel::clear() { gradients_->clear(); }

StepResult DataParallel::step(optim::Optimizer& optimizer, const StepOptions& options) {
  at::NoGradGuard no_grad;
  require(optimizer.rows().size() == rows_.size(),
          "this optimizer was made from {} rows, not from the {} of this DataParallel: pass rows()", optimizer.rows().size(), rows_.size());
  StepResult result;
  result.norm = grad_norm() / options.loss_scale;
  result.finite = std::isfinite(result.norm);
  if (param_gather_) param_gather_->release_all();
  if (result.finite) {
    // Every rank has come to grad_norm(): nobody computes with the parameters any more.
    if (options_.offload) copy_for_offload(true);
    optimizer.begin_step(options.lr, optim::clip_scale(result.norm, options.max_norm) / options.loss_scale);
    for (size_t u = 0; u < units_.size(); ++u) {
      optimizer.step_row(u);
      if (!options_.offload) spread(u);
    }
    if (options_.offload) copy_for_offload(false);
    finish_spreading();
  }
  if (param_gather_) param_gather_->end_step();
  clear();
  if (options_.broadcast_buffers) sync_buffers();
  return result;
}

// Every rank adds up its own slices, whatever else it holds, and all add the ranks' numbers in one order: so the norm is the same bits
// in every stage and on every rank.
double DataParallel::grad_norm() {
  std::vector<at::Tensor> slices;
  for (size_t u = 0; u < units_.size(); ++u) slices.push_back(gradients_->slice(u));
  const double mine = optim::sum_of_squares(slices);
  if (group_.world() == 1) return std::sqrt(mine);
  const at::TensorOptions options = at::TensorOptions().dtype(at::kDouble);
  at::Tensor all = at::zeros({group_.world()}, options.device(group_.device()));
  all[group_.rank()].fill_(mine);
  group_.all_gather(all, all.narrow(0, group_.rank(), 1), "norm of the gradients");
  all = all.to(at::kCPU);
  double sum = 0;
  for (int rank = 0; rank < group_.world(); ++rank) sum += all.data_ptr<double>()[rank];
  return std::sqrt(sum);
}

void DataParallel::spread(size_t u) {
  const Place& place = places_[u];
  if (!shares_optimizer() || shared_ || place.resident || group_.world() == 1) return;
  queue_.push(group_.start_all_gather(place.whole, place.own, fmt::format("new parameters of {}", units_[u].name)));
}

void DataParallel::finish_spreading() {
  queue_.finish_all();
  if (shared_) group_.barrier("new parameters", kStepTimeout);
}

void DataParallel::loaded() {
  at::NoGradGuard no_grad;
  if (param_gather_) param_gather_->release_all();
  for (size_t u = 0; u < units_.size(); ++u) {
    if (!rows_[u].params.is_same(held(u))) held(u).copy_(rows_[u].params);
    spread(u);
  }
  finish_spreading();
}

// The optimizer works on the host: gradients go there, parameters come back.
void DataParallel::copy_for_offload(bool to_host) {
  for (size_t u = 0; u < units_.size(); ++u) {
    if (to_host) {
      rows_[u].grads.copy_(shares_optimizer() ? gradients_->slice(u) : gradients_->whole(u));
      continue;
    }
    held(u).copy_(rows_[u].params);
    spread(u);
  }
}

void DataParallel::sync_buffers() {
  if (group_.world() == 1) return;
  for (const auto& item : module_.named_buffers()) {
    at::Tensor value = item.value();
    if (!value.defined() || value.numel() == 0) continue;
    at::Tensor flat = value.contiguous();
    group_.broadcast(flat.scalar_type() == at::kBool ? flat.view(at::kByte) : flat, 0, fmt::format("buffer {}", item.key()));
    if (!flat.is_same(value)) value.copy_(flat);
  }
}

std::vector<Span> DataParallel::spans(Cover cover, const std::vector<at::Tensor>& per_row) const {
  std::vector<Span> found;
  PHALANX_CHECK(per_row.empty() || per_row.size() == rows_.size());
  for (size_t u = 0; u < units_.size(); ++u) {
    const at::Tensor& row = per_row.empty() ? rows_[u].params : per_row[u];
    const Slice wanted = cover == Cover::kOwn ? own(u) : row_of(u);
    const int64_t begin = wanted.begin - row_of(u).begin;  // in the row
    for (const Overlap& part : overlaps(units_[u], wanted.begin, wanted.end())) {
      const Param& param = params_[part.param];
      found.push_back({param.name, param.value.sizes().vec(), part.first, row.narrow(0, begin + part.offset, part.numel)});
    }
  }
  return found;
}

int64_t DataParallel::parameter_count() const {
  int64_t count = 0;
  for (const Unit& unit : units_)
    for (const Slot& slot : unit.slots) count += slot.numel;
  return count;
}

std::string DataParallel::describe() const {
  return fmt::format("{} over {} rank{}, {} unit{}{}{}", name_of(options_.stage), group_.world(), group_.world() == 1 ? "" : "s",
                     units_.size(), units_.size() == 1 ? "" : "s", shared_ ? ", one copy of the parameters per host" : "",
                     frozen_.units.empty() ? "" : fmt::format(", {} of frozen parameters", frozen_.units.size()));
}

MemoryUse DataParallel::memory() const {
  MemoryUse use;
  for (size_t u = 0; u < units_.size(); ++u) {
    const at::Tensor& held = places_[u].resident ? places_[u].own : places_[u].whole;
    // One copy for all ranks is a part of one copy for each.
    use.parameters += static_cast<int64_t>(held.nbytes()) / (shared_ ? group_.world() : 1);
    if (options_.compute != at::kFloat || options_.offload) use.parameters += static_cast<int64_t>(rows_[u].params.nbytes());
  }
  for (const Place& place : frozen_.places) use.parameters += static_cast<int64_t>((place.resident ? place.own : place.whole).nbytes());
  if (param_gather_) use.parameters += param_gather_->live_bytes_peak();
  use.gradients = gradients_->held_bytes();
  use.carriers = gradients_->carrier_bytes();
  return use;
}

}  // namespace phalanx::engine::parallel
