// DataParallel before the first step: which parameters there are, where they go, and that all ranks agree.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/parallel/data_parallel.h"
#include "engine/parallel/refuse.h"

namespace phalanx::engine::parallel {
namespace {

constexpr std::chrono::minutes kStartTimeout{30};

bool is_number(std::string_view word) { return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos; }

// The part of the model a parameter belongs to, for stage 3: the element of a list of modules that holds it (ModuleList, Sequential:
// children named 0, 1, 2, …), however deep the list lies: "model.layers.7". Else the child of the root.
std::string part_of(const std::string& name) {
  const std::vector<std::string_view> words = base::split(name, '.');
  size_t last = 0;
  for (size_t i = 0; i + 1 < words.size() && last == 0; ++i)
    if (is_number(words[i])) last = i;
  return base::join(std::vector<std::string_view>(words.begin(), words.begin() + static_cast<ptrdiff_t>(last) + 1), ".");
}

}  // namespace

base::Result<std::unique_ptr<DataParallel>> DataParallel::wrap(torch::nn::Module& module, comm::Group& group, const Options& options) {
  TRY(refuse_impossible(options, {group.world(), group.device().is_cpu(), group.ordered_sums()}));
  std::unique_ptr<DataParallel> made(new DataParallel(module, group, options));
  if (made->options_.groups.empty()) made->options_.groups.push_back({});
  TRY(comm::agree(group, made->collect(), "reading the parameters"));
  made->lay_out();
  TRY(made->agree());
  at::NoGradGuard no_grad;
  if (options.stage == Stage::kZero3)
    made->param_gather_ = std::make_unique<ParamGather>(group, made->queue_, made->live_units(), options.prefetch);
  made->places_.resize(made->units_.size());
  made->frozen_.places.resize(made->frozen_.units.size());
  if (options.share_parameters) made->share_memory();
  for (size_t u = 0; u < made->units_.size(); ++u) made->place(u);
  for (size_t u = 0; u < made->frozen_.units.size(); ++u) made->place_frozen(u);
  made->make_gradients();
  for (size_t u = 0; u < made->units_.size(); ++u) made->make_row(u);
  made->share_values();
  made->sync_buffers();
  return made;
}

// Trained parameters, each once: libtorch lists a tied one under every name it has. In stage 3 the frozen ones too, but for those of
// another dtype or device, which stay as they are.
base::Status DataParallel::collect() {
  std::set<const void*> seen;
  for (const auto& item : module_.named_parameters()) {
    const at::Tensor& value = item.value();
    if (!seen.insert(value.unsafeGetTensorImpl()).second) continue;
    if (!value.requires_grad()) {
      const bool shards = options_.stage == Stage::kZero3 && value.scalar_type() == at::kFloat && value.layout() == at::kStrided;
      if (shards && value.device() == group_.device()) frozen_.params.push_back({item.key(), value});
      continue;
    }
    auto unfit = [&](std::string why) {
      return base::fail(base::ErrorKind::kConfig, fmt::format("parameter {} cannot be trained in parallel", base::quote(item.key())))
          .because(std::move(why));
    };
    if (!value.is_leaf()) return unfit("it is the result of an operation, not a leaf");
    if (value.scalar_type() != at::kFloat)
      return unfit(fmt::format("its dtype is {}; master weights are fp32", at::toString(value.scalar_type())));
    if (value.layout() != at::kStrided) return unfit("it is sparse");
    if (value.device() != group_.device())
      return unfit(fmt::format("it is on {}, the group works on {}", value.device().str(), group_.device().str()));
    params_.push_back({item.key(), value});
  }
  if (params_.empty())
    return base::fail(base::ErrorKind::kConfig, "no parameter of the module requires a gradient")
        .with_hint("use the module without DataParallel");
  return base::ok();
}

void DataParallel::lay_out() {
  std::vector<ParamShape> shapes;
  for (const Param& param : params_) {
    const int group = options_.group_of ? options_.group_of(param.name, param.value) : 0;
    shapes.push_back({param.name, param.value.sizes().vec(), param.value.numel(), group, part_of(param.name)});
  }
  const auto bytes = static_cast<int64_t>(c10::elementSize(options_.gradients));
  const LayoutSizes sizes{options_.first_bucket_bytes / bytes, options_.bucket_bytes / bytes, options_.persistent_elements};
  // One cut for all stages, where they shall be equal bit for bit: the norm is a sum over slices.
  const bool sharded = options_.stage == Stage::kZero3, parts = sharded || options_.deterministic;
  units_ = parts ? plan_parts(shapes, sizes, group_.world(), sharded) : plan_buckets(shapes, sizes, group_.world());
  lay_out_frozen();
}

void DataParallel::lay_out_frozen() {
  std::vector<ParamShape> shapes;
  for (const Param& param : frozen_.params)
    shapes.push_back({param.name, param.value.sizes().vec(), param.value.numel(), 0, part_of(param.name)});
  const int64_t elements = options_.bucket_bytes / static_cast<int64_t>(sizeof(float));
  frozen_.units = plan_parts(shapes, {elements, elements, options_.persistent_elements}, group_.world(), /*sharded=*/true);
  for (Unit& unit : frozen_.units) unit.name += " (frozen)";
}

base::Status DataParallel::agree() {
  comm::Fingerprint shape;
  for (const Unit& unit : units_)
    for (const Slot& slot : unit.slots) {
      shape.add(params_[slot.param].name);
      shape.add(slot.group);
      shape.add(slot.offset);
      for (int64_t size : params_[slot.param].value.sizes()) shape.add(size);
    }
  for (const Param& param : frozen_.params) {
    shape.add(param.name);
    for (int64_t size : param.value.sizes()) shape.add(size);
  }
  shape.add(show(options_, {group_.world(), group_.device().is_cpu(), group_.ordered_sums()}));
  for (const Unit& unit : units_)
    for (const Slot& slot : unit.slots)
      if (slot.group < 0 || static_cast<size_t>(slot.group) >= options_.groups.size())
        return base::fail(base::ErrorKind::kConfig, fmt::format("parameter {} is put into group {} of {}",
                                                                base::quote(params_[slot.param].name), slot.group, options_.groups.size()));
  return comm::require_same(group_, "the model (names, shapes and groups of its parameters, and the options of DataParallel)",
                            shape.value());
}

// The unit's parameters as rank 0's module has them, for the moment in which each rank cuts its slice.
at::Tensor DataParallel::from_rank_zero(const Unit& unit, const std::vector<Param>& params, at::ScalarType type) {
  at::Tensor flat = at::zeros({unit.elements}, at::TensorOptions().dtype(type).device(group_.device()));
  if (group_.rank() == 0)
    for (const Slot& slot : unit.slots) flat.narrow(0, slot.offset, slot.numel).copy_(params[slot.param].value.reshape({-1}));
  group_.broadcast(flat, 0, fmt::format("initial values of {}", unit.name));
  return flat;
}

// One copy of the parameters for all ranks: of every unit, or, where the memory does not last for all of them, of none. The group tells
// every rank the same.
void DataParallel::share_memory() {
  std::vector<at::Tensor> common;
  for (const Unit& unit : units_) {
    auto one = group_.common(unit.elements, options_.compute);
    if (!one) return;
    common.push_back(*one);
  }
  shared_ = true;
  for (size_t u = 0; u < units_.size(); ++u) places_[u].whole = common[u];
}

// A part of which some parameters are trained and some are frozen is two units, which its operations use by turns: gathering the next one
// ahead must not take either away.
int DataParallel::live_units() const {
  const auto is_sharded = [](const Unit& unit) { return unit.sharded; };
  const bool both =
      std::any_of(units_.begin(), units_.end(), is_sharded) && std::any_of(frozen_.units.begin(), frozen_.units.end(), is_sharded);
  return options_.live_units + (both ? 1 : 0);
}

// Moves the parameters of one unit to where they live from now on.
void DataParallel::place(size_t u) {
  const Unit& unit = units_[u];
  Place& place = places_[u];
  const Slice mine = own(u);
  if (unit.sharded) return shard(unit, params_, place);
  if (!shared_) place.whole = group_.window(unit.elements, options_.compute);
  place.own = place.whole.narrow(0, mine.begin, mine.numel);
  for (const Slot& slot : unit.slots) {
    at::Tensor& param = params_[slot.param].value;
    at::Tensor view = place.whole.narrow(0, slot.offset, slot.numel).view(param.sizes());
    if (!shared_ || group_.rank() == 0) view.copy_(param);
    param.set_data(view);  // keeps the tensor's identity; the memory it had is freed
  }
}

// Its parameters are without memory until an operation touches them; each rank keeps its slice.
void DataParallel::shard(const Unit& unit, const std::vector<Param>& params, Place& place) {
  const Slice mine = slice_of(unit, group_.rank(), group_.world());
  const at::ScalarType type = &params == &params_ ? options_.compute : at::kFloat;
  place.own = group_.window(mine.numel, type);
  place.own.copy_(from_rank_zero(unit, params, type).narrow(0, mine.begin, mine.numel));
  place.resident = param_gather_->add(unit.name, unit.elements, place.own);
  place.whole = param_gather_->tensor(*place.resident);
  const at::DisableRecordFunctionGuard not_announced;
  for (const Slot& slot : unit.slots) {
    at::Tensor param = params[slot.param].value;
    param.set_data(place.whole.narrow(0, slot.offset, slot.numel).view(param.sizes()));
  }
}

// Of what is not trained, small parameters stay where they are on every rank, and take rank 0's values.
void DataParallel::place_frozen(size_t u) {
  const Unit& unit = frozen_.units[u];
  Place& place = frozen_.places[u];
  if (unit.sharded) return shard(unit, frozen_.params, place);
  place.whole = place.own = from_rank_zero(unit, frozen_.params, at::kFloat);
  for (const Slot& slot : unit.slots) {
    at::Tensor param = frozen_.params[slot.param].value;
    param.set_data(place.whole.narrow(0, slot.offset, slot.numel).view(param.sizes()));
  }
}

void DataParallel::make_gradients() {
  GradientRules rules;
  rules.keep = options_.stage >= Stage::kZero2 ? Keep::kDropped : shares_optimizer() ? Keep::kSlice : Keep::kAll;
  rules.mean = options_.reduce == Reduce::kMean;
  rules.each_micro_batch = options_.deterministic;
  rules.learn_repeats = rules.keep != Keep::kDropped || options_.repeated_gradients;
  rules.dtype = options_.gradients;
  std::vector<at::Tensor> values;
  std::vector<std::string> names;
  for (const Param& param : params_) {
    values.push_back(param.value);
    names.push_back(param.name);
  }
  gradients_ = std::make_unique<Gradients>(units_, std::move(values), std::move(names), group_, queue_, rules, [this](size_t unit) {
    if (places_[unit].resident) param_gather_->release(*places_[unit].resident);
  });
}

void DataParallel::make_row(size_t u) {
  const Unit& unit = units_[u];
  const Slice mine = row_of(u);
  optim::Row row;
  row.grads = shares_optimizer() ? gradients_->slice(u) : gradients_->whole(u);
  if (options_.compute == at::kFloat && !options_.offload) {
    row.params = held(u);
  } else {
    const at::Device where = options_.offload ? at::Device(at::kCPU) : group_.device();
    row.params = at::zeros({mine.numel}, at::TensorOptions().dtype(at::kFloat).device(where).pinned_memory(options_.offload));
    if (options_.offload) row.grads = at::empty_like(row.params);
    else row.compute = held(u);
  }
  row.runs = runs_in(unit, mine.begin, mine.end());
  rows_.push_back(std::move(row));
}

void DataParallel::initialise(const std::function<void()>& fill) {
  at::NoGradGuard no_grad;
  if (param_gather_) param_gather_->begin_writing();
  if (!shared_ || group_.rank() == 0) fill();  // one memory: rank 0 alone writes it
  if (param_gather_) param_gather_->end_writing();
  share_values();
}

// All ranks take rank 0's parameters; stage 3's slices are of them already.
void DataParallel::share_values() {
  if (shared_) group_.barrier("initial values", kStartTimeout);
  for (size_t u = 0; u < units_.size(); ++u)
    if (!units_[u].sharded && !shared_) group_.broadcast(places_[u].whole, 0, fmt::format("initial values of {}", units_[u].name));
  for (size_t u = 0; u < frozen_.units.size(); ++u)
    if (!frozen_.units[u].sharded) group_.broadcast(frozen_.places[u].whole, 0, "initial values of " + frozen_.units[u].name);
  take_masters();
}

// Master weights begin as what the model begins with, rounded to the compute dtype.
void DataParallel::take_masters() {
  for (size_t u = 0; u < units_.size(); ++u)
    if (!rows_[u].params.is_same(held(u))) rows_[u].params.copy_(held(u));
}

}  // namespace phalanx::engine::parallel
