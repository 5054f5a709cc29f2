#include "engine/optim/grad_scaler.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace phalanx::engine::optim {

void GradScaler::update(bool finite) {
  if (!finite) {
    scale_ *= static_cast<float>(options_.backoff);
    steps_since_ = 0;
    return;
  }
  if (++steps_since_ < options_.interval) return;
  const float grown = scale_ * static_cast<float>(options_.growth);
  if (std::isfinite(grown)) scale_ = grown;
  steps_since_ = 0;
}

base::Json GradScaler::state() const {
  return {{"scale", static_cast<double>(scale_)},
          {"growth_factor", options_.growth},
          {"backoff_factor", options_.backoff},
          {"growth_interval", options_.interval},
          {"_growth_tracker", steps_since_}};
}

base::Status GradScaler::restore(const base::Json& state) {
  auto bad = [](std::string_view key, std::string_view want) {
    return base::fail(base::ErrorKind::kConfig, "the loss scaling state is invalid").because(fmt::format("\"{}\" is not {}", key, want));
  };
  auto scale = base::get_number(state, "scale"), growth = base::get_number(state, "growth_factor");
  auto backoff = base::get_number(state, "backoff_factor");
  auto interval = base::get_int(state, "growth_interval"), tracker = base::get_int(state, "_growth_tracker");
  if (!scale || !(*scale > 0) || *scale > std::numeric_limits<float>::max()) return bad("scale", "a positive 32-bit float");
  if (!growth || !(*growth > 1) || !std::isfinite(*growth)) return bad("growth_factor", "a number above 1");
  if (!backoff || !(*backoff > 0 && *backoff < 1)) return bad("backoff_factor", "between 0 and 1");
  if (!interval || *interval < 1) return bad("growth_interval", "a positive whole number");
  if (!tracker || *tracker < 0 || *tracker >= *interval) return bad("_growth_tracker", "from 0 to growth_interval - 1");
  options_ = {options_.initial, *growth, *backoff, *interval};
  scale_ = static_cast<float>(*scale);
  steps_since_ = *tracker;
  return base::ok();
}

}  // namespace phalanx::engine::optim
