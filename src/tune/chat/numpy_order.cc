#include "tune/chat/numpy_order.h"

#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace phalanx::tune {
namespace {

__extension__ using Wide = unsigned __int128;

// A seed spread over a pool of four words, and words drawn from it.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    std::array<uint32_t, 4> entropy{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
    uint32_t constant = 0x43b0d7e5;
    const auto hashed = [&](uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875;
      value *= constant;
      return value ^ value >> 16;
    };
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hashed(entropy[i]);
    for (size_t from = 0; from < pool_.size(); ++from)
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from == to) continue;
        const uint32_t mixed = pool_[to] * 0xca01f9dd - hashed(pool_[from]) * 0x4973f715;
        pool_[to] = mixed ^ mixed >> 16;
      }
  }
  std::array<uint64_t, 4> words() const {
    std::array<uint32_t, 8> halves{};
    uint32_t constant = 0x8b51f9dd;
    for (size_t i = 0; i < halves.size(); ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38ded;
      value *= constant;
      halves[i] = value ^ value >> 16;
    }
    std::array<uint64_t, 4> out{};
    for (size_t i = 0; i < out.size(); ++i) out[i] = halves[2 * i] | uint64_t{halves[2 * i + 1]} << 32;
    return out;
  }

 private:
  std::array<uint32_t, 4> pool_{};
};

class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed) {
    const auto words = SeedSequence(seed).words();
    increment_ = (Wide{words[2]} << 64 | words[3]) << 1 | 1;
    step();
    state_ += Wide{words[0]} << 64 | words[1];
    step();
  }
  // Low half first: a word of 64 bits serves two calls.
  uint32_t next() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    step();
    const auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
    const uint64_t word = std::rotr(high ^ low, static_cast<int>(high >> 58));
    has_half_ = true;
    half_ = static_cast<uint32_t>(word >> 32);
    return static_cast<uint32_t>(word);
  }
  // From 0 to `most`: numbers of as many bits, until one is not greater.
  uint32_t up_to(uint32_t most) {
    if (most == 0) return 0;
    const uint32_t mask = UINT32_MAX >> std::countl_zero(most);
    uint32_t number = next() & mask;
    while (number > most) number = next() & mask;
    return number;
  }

 private:
  void step() { state_ = state_ * (Wide{2549297995355413924ULL} << 64 | 4865540595714422341ULL) + increment_; }
  Wide state_ = 0, increment_ = 0;
  uint32_t half_ = 0;
  bool has_half_ = false;
};

}  // namespace

std::vector<int64_t> numpy_permutation(uint64_t seed, int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  Pcg64 random(seed);
  for (size_t i = out.size(); i-- > 1;) std::swap(out[i], out[random.up_to(static_cast<uint32_t>(i))]);
  return out;
}

}  // namespace phalanx::tune
