// Mixed precision by autocast: inside a scope, products of matrices take their arguments rounded to a 16-bit type. The calls that differ
// between versions of libtorch (2.4 named them anew, with the device as an argument) are in this file only.
#pragma once

#include <ATen/autocast_mode.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "engine/torch_version.h"

namespace phalanx::engine {

struct AutocastState {
  bool on = false;
  at::ScalarType type = at::kBFloat16;
};

#if PHALANX_TORCH_SINCE(2, 4)
inline AutocastState autocast_of(at::Device device) {
  return {at::autocast::is_autocast_enabled(device.type()), at::autocast::get_autocast_dtype(device.type())};
}
inline void set_autocast(at::Device device, const AutocastState& state) {
  at::autocast::set_autocast_dtype(device.type(), state.type);
  at::autocast::set_autocast_enabled(device.type(), state.on);
}
#else
inline AutocastState autocast_of(at::Device device) {
  if (device.is_cpu()) return {at::autocast::is_cpu_enabled(), at::autocast::get_autocast_cpu_dtype()};
  return {at::autocast::is_enabled(), at::autocast::get_autocast_gpu_dtype()};
}
inline void set_autocast(at::Device device, const AutocastState& state) {
  if (device.is_cpu()) {
    at::autocast::set_autocast_cpu_dtype(state.type);
    at::autocast::set_cpu_enabled(state.on);
  } else {
    at::autocast::set_autocast_gpu_dtype(state.type);
    at::autocast::set_enabled(state.on);
  }
}
#endif

// Autocast as given while it lives, on this thread; as it was behind it. `keep_casts`: each parameter is rounded once per outermost
// scope and not once per use.
class AutocastScope {
 public:
  AutocastScope(at::Device device, const AutocastState& state, bool keep_casts = true)
      : device_(device), before_(autocast_of(device)), kept_before_(at::autocast::is_autocast_cache_enabled()) {
    set_autocast(device, state);  // throws what torch throws of a type it cannot do on this device, and changes nothing then
    at::autocast::increment_nesting();
    at::autocast::set_autocast_cache_enabled(keep_casts);
  }
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set_autocast(device_, before_);
    at::autocast::set_autocast_cache_enabled(kept_before_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  at::Device device_;
  AutocastState before_;
  bool kept_before_;
};

}  // namespace phalanx::engine
