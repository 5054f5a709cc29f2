#include <algorithm>
#include <cmath>
#include <numbers>

#include "tune/decoder/decoder_config.h"

namespace phalanx::tune {
namespace {

// Long waves are slowed by the factor, short ones stay, between them both are mixed (Llama 3.1).
float llama3(float inverse, const Rope& rope) {
  const auto original = static_cast<float>(rope.original_positions), factor = static_cast<float>(rope.factor);
  const auto low = static_cast<float>(rope.low_freq_factor), high = static_cast<float>(rope.high_freq_factor);
  const float wave = 2 * std::numbers::pi_v<float> / inverse;
  if (wave > original / low) return inverse / factor;
  if (wave < original / high) return inverse;
  const float smooth = (original / wave - low) / (high - low);
  return (1 - smooth) * inverse / factor + smooth * inverse;
}

// The pair of dimensions that turns `rotations` times within the original context (YaRN, arXiv 2309.00071).
double pair_of_rotations(double rotations, const Rope& rope, double dim) {
  return dim * std::log(static_cast<double>(rope.original_positions) / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
}

void yarn(std::vector<float>* inverse, const Rope& rope) {
  const double dim = 2 * static_cast<double>(inverse->size());
  const double low = std::max(std::floor(pair_of_rotations(rope.beta_fast, rope, dim)), 0.0);
  double high = std::min(std::ceil(pair_of_rotations(rope.beta_slow, rope, dim)), dim - 1);
  if (high == low) high += 0.001;
  for (size_t i = 0; i < inverse->size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double one = (*inverse)[i];
    (*inverse)[i] = static_cast<float>(one / rope.factor * ramp + one * (1 - ramp));
  }
}

}  // namespace

std::vector<float> inverse_frequencies(const DecoderConfig& config) {
  std::vector<float> out;
  const auto dim = static_cast<float>(config.head_dim), theta = static_cast<float>(config.rope.theta);
  for (int64_t i = 0; i < config.head_dim; i += 2) out.push_back(1 / std::pow(theta, static_cast<float>(i) / dim));
  switch (config.rope.kind) {
    case Rope::Kind::kDefault: break;
    case Rope::Kind::kLinear:
      for (float& one : out) one /= static_cast<float>(config.rope.factor);
      break;
    case Rope::Kind::kLlama3:
      for (float& one : out) one = llama3(one, config.rope);
      break;
    case Rope::Kind::kYarn: yarn(&out, config.rope); break;
  }
  return out;
}

double rope_scale(const Rope& rope) {
  if (rope.kind != Rope::Kind::kYarn) return 1;
  return rope.attention_factor.value_or(rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1);
}

}  // namespace phalanx::tune
