// Loss scaling for fp16: small gradients would round to zero, so the loss is multiplied before backward and the gradients are divided in
// the optimizer's pass. The factor halves when a gradient overflows (that step is skipped) and grows after a long time without.
// The rules and the words of the state are those of torch.cuda.amp.GradScaler.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "base/result.h"

namespace phalanx::engine::optim {

struct GradScalerOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;  // steps without overflow before it grows
};

class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {}) : options_(options), scale_(static_cast<float>(options.initial)) {}

  double scale() const { return scale_; }          // the loss times this
  double unscale() const { return 1.0 / scale_; }  // the gradients times this
  // After each step. `finite`: no rank's gradients hold an infinity or NaN; if false the step must have been skipped.
  void update(bool finite);

  base::Json state() const;  // {"scale": 65536.0, "growth_factor": …, "backoff_factor": …, "growth_interval": …, "_growth_tracker": …}
  base::Status restore(const base::Json& state);  // kConfig when a number is missing or out of range

 private:
  GradScalerOptions options_;
  float scale_;
  int64_t steps_since_ = 0;
};

}  // namespace phalanx::engine::optim
