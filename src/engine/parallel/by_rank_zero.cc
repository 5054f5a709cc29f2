// DataParallel's parameters and states by way of rank 0.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include "engine/parallel/data_parallel.h"

namespace phalanx::engine::parallel {

std::vector<Span> DataParallel::gathered(const std::vector<at::Tensor>& per_row) {
  at::NoGradGuard no_grad;
  std::vector<Span> found;
  for (size_t u = 0; u < units_.size(); ++u) {
    const at::Tensor& row = per_row.empty() ? rows_[u].params : per_row[u];
    at::Tensor flat = row;
    if (shares_optimizer()) {
      flat = at::zeros({units_[u].elements}, at::TensorOptions().dtype(at::kFloat).device(group_.device()));
      group_.all_gather(flat, row.to(group_.device()), fmt::format("checkpoint of {}", units_[u].name));
    }
    if (group_.rank() != 0) continue;
    flat = flat.to(at::kCPU);  // a GPU has no room for all of it
    for (const Slot& slot : units_[u].slots)
      found.push_back({params_[slot.param].name, params_[slot.param].value.sizes().vec(), 0, flat.narrow(0, slot.offset, slot.numel)});
  }
  return found;
}

base::Status DataParallel::scattered(const std::vector<at::Tensor>& per_row, const std::function<base::Status(const Span&)>& fill) {
  at::NoGradGuard no_grad;
  base::Status filled = base::ok();
  for (size_t u = 0; u < units_.size(); ++u) {
    const at::Tensor& row = per_row.empty() ? rows_[u].params : per_row[u];
    at::Tensor flat = at::zeros({units_[u].elements}, at::TensorOptions().dtype(at::kFloat).device(group_.device()));
    if (group_.rank() == 0)
      for (const Slot& slot : units_[u].slots)
        if (filled.ok())
          filled = fill({params_[slot.param].name, params_[slot.param].value.sizes().vec(), 0, flat.narrow(0, slot.offset, slot.numel)});
    group_.broadcast(flat, 0, fmt::format("checkpoint of {}", units_[u].name));
    row.copy_(flat.narrow(0, row_of(u).begin, row.numel()));
  }
  return comm::agree(group_, filled, "reading the checkpoint on rank 0");
}

// Rank 0's parameters of a sharded unit get memory of their own, with all ranks' slices in it.
void DataParallel::whole_on_rank_zero(const std::vector<Param>& params, const Unit& unit, const Place& place) {
  at::Tensor flat = at::empty({unit.elements}, place.own.options());
  group_.all_gather(flat, place.own, fmt::format("model to write, {}", unit.name));
  if (group_.rank() != 0) return;
  flat = flat.to(at::kCPU);                            // a GPU has no room for all of it
  const at::DisableRecordFunctionGuard not_announced;  // giving a parameter other memory does not use it
  for (const Slot& slot : unit.slots) {
    at::Tensor param = params[slot.param].value;
    param.set_data(flat.narrow(0, slot.offset, slot.numel).view(param.sizes()));
  }
}

base::Status DataParallel::with_whole_model(const std::function<base::Status()>& use) {
  at::NoGradGuard no_grad;
  if (param_gather_) param_gather_->release_all();
  const auto for_sharded = [&](auto&& body) {
    for (size_t u = 0; u < units_.size(); ++u)
      if (places_[u].resident) body(params_, units_[u], places_[u]);
    for (size_t u = 0; u < frozen_.units.size(); ++u)
      if (frozen_.places[u].resident) body(frozen_.params, frozen_.units[u], frozen_.places[u]);
  };
  for_sharded([&](auto& params, auto& unit, auto& place) { whole_on_rank_zero(params, unit, place); });
  base::Status used = group_.rank() == 0 ? use() : base::ok();
  const at::DisableRecordFunctionGuard not_announced;
  for_sharded([&](auto& params, auto& unit, auto& place) {
    for (const Slot& slot : unit.slots) {
      at::Tensor param = params[slot.param].value;
      param.set_data(place.whole.narrow(0, slot.offset, slot.numel).view(param.sizes()));
    }
  });
  return comm::agree(group_, std::move(used), "writing the model on rank 0");
}

std::vector<std::pair<std::string, std::vector<int64_t>>> DataParallel::shapes() const {
  std::vector<std::pair<std::string, std::vector<int64_t>>> found;
  for (const Param& param : params_) found.emplace_back(param.name, param.value.sizes().vec());
  return found;
}

}  // namespace phalanx::engine::parallel
