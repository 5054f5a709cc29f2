// Random numbers of one item: a function of the run's seed, the epoch and the item's number, so that an augmented item is the
// same whichever worker, rank or resumed run makes it. SplitMix64 (Steele, Lea, Flood 2014); no cryptography.
#pragma once

#include <cstdint>

namespace phalanx::engine::data {

class ItemRandom {
 public:
  ItemRandom(uint64_t seed, int64_t epoch, int64_t item) {
    state_ = mix(mix(mix(seed) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(item));
  }
  uint64_t next() { return mix(state_ += kStep); }
  // Below `limit`, which must be above 0. The bias of the multiplication is below limit / 2^64.
  uint64_t below(uint64_t limit) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

  uint64_t state() const { return state_; }
  static ItemRandom at_state(uint64_t state) {
    ItemRandom random(0, 0, 0);
    random.state_ = state;
    return random;
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t mix(uint64_t z) {
    z += kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace phalanx::engine::data
