// Stops a training that no longer gets better. Pure; every rank sees the same losses and so decides the same.
#pragma once

#include <cstdint>
#include <limits>

namespace phalanx::engine::train {

struct EarlyStop {
  int64_t patience = 0;  // validations without a better loss until it stops; 0: never
  double min_delta = 0;  // a loss is better if it is lower by more than this

  double best = std::numeric_limits<double>::infinity();
  int64_t since_best = 0;  // validations

  // True if `loss` is the best so far. A loss that is not a number is no better.
  bool better(double loss) {
    if (loss < best - min_delta || (best == std::numeric_limits<double>::infinity() && loss < best)) {
      best = loss;
      since_best = 0;
      return true;
    }
    ++since_best;
    return false;
  }
  bool stop() const { return patience > 0 && since_best >= patience; }
};

}  // namespace phalanx::engine::train
