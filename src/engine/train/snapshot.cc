#include "engine/train/snapshot.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "base/unicode.h"

namespace engine::train {
namespace {

std::string shape_text(at::IntArrayRef shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

base::Error other_model(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "the checkpoint is of another model")
      .because(std::move(why))
      .with_hint("use the model section its manifest.json shows under \"about\", or another `out` folder");
}

base::Status copy(const std::map<std::string, at::Tensor>& from, const std::string& name, at::Tensor to) {
  auto found = from.find(name);
  if (found == from.end()) return other_model(fmt::format("it has no tensor {}", base::quote(name)));
  const at::Tensor& value = found->second;
  if (value.sizes() != to.sizes() || value.scalar_type() != to.scalar_type())
    return other_model(fmt::format("its {} is {} {}, the config's is {} {}", base::quote(name), at::toString(value.scalar_type()),
                                   shape_text(value.sizes()), at::toString(to.scalar_type()), shape_text(to.sizes())));
  to.copy_(value);
  return base::ok();
}

}  // namespace

checkpoint::Snapshot snapshot(const std::vector<parallel::Bucket>& buckets, const optim::Optimizer& optimizer, base::Json about) {
  checkpoint::Snapshot result{optimizer.steps_done, std::move(about), {}, {}};
  for (size_t b = 0; b < buckets.size(); ++b)
    for (const parallel::Slot& slot : buckets[b].slots) {
      result.model.push_back({slot.name, view_of(buckets[b].params, slot)});
      for (const optim::NamedState& state : optimizer.states())
        result.optimizer.push_back({state.name + "." + slot.name, view_of(state.rows[b], slot)});
    }
  return result;
}

base::Status restore(const checkpoint::Loaded& from, std::vector<parallel::Bucket>& buckets, optim::Optimizer& optimizer) {
  at::NoGradGuard no_grad;
  size_t slots = 0;
  for (size_t b = 0; b < buckets.size(); ++b)
    for (const parallel::Slot& slot : buckets[b].slots) {
      ++slots;
      TRY(copy(from.model, slot.name, view_of(buckets[b].params, slot)));
      for (const optim::NamedState& state : optimizer.states())
        TRY(copy(from.optimizer, state.name + "." + slot.name, view_of(state.rows[b], slot)));
    }
  if (from.model.size() != slots) return other_model(fmt::format("it has {} tensors, the config's model has {}", from.model.size(), slots));
  optimizer.steps_done = from.step;
  return base::ok();
}

}  // namespace engine::train
