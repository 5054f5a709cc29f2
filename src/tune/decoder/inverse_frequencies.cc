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

// The base grows with the length of the text, once that is beyond the context of the training (dynamic NTK scaling).
double dynamic_theta(const DecoderConfig& config, const Rope& rope, int64_t length) {
  if (length <= config.positions) return rope.theta;
  const auto dim = static_cast<double>(config.rotary_dim);
  const double share = static_cast<double>(length) / static_cast<double>(config.positions);
  return rope.theta * std::pow(rope.factor * share - (rope.factor - 1), dim / (dim - 2));
}

// By how much the context was extended after the first training.
double extension(const DecoderConfig& config, const Rope& rope) {
  if (rope.original_positions == config.positions) return rope.factor;
  return static_cast<double>(config.positions) / static_cast<double>(rope.original_positions);
}

}  // namespace

std::vector<float> inverse_frequencies(const DecoderConfig& config, const Rope& rope, int64_t length) {
  std::vector<float> out;
  const auto dim = static_cast<float>(config.rotary_dim);
  const auto theta = static_cast<float>(rope.kind == Rope::Kind::kDynamic ? dynamic_theta(config, rope, length) : rope.theta);
  for (int64_t i = 0; i < config.rotary_dim; i += 2) out.push_back(1 / std::pow(theta, static_cast<float>(i) / dim));
  const std::vector<double>& factors = length > rope.original_positions ? rope.long_factors : rope.short_factors;
  switch (rope.kind) {
    case Rope::Kind::kDefault:
    case Rope::Kind::kDynamic: break;
    case Rope::Kind::kLinear:
      for (float& one : out) one /= static_cast<float>(rope.factor);
      break;
    case Rope::Kind::kLlama3:
      for (float& one : out) one = llama3(one, rope);
      break;
    case Rope::Kind::kYarn: yarn(&out, rope); break;
    case Rope::Kind::kLongRope:
      for (size_t i = 0; i < out.size(); ++i) out[i] /= static_cast<float>(factors[i]);
      break;
  }
  return out;
}

double rope_scale(const DecoderConfig& config, const Rope& rope) {
  if (rope.kind == Rope::Kind::kYarn) return rope.attention_factor.value_or(rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1);
  if (rope.kind != Rope::Kind::kLongRope) return 1;
  const double factor = extension(config, rope), original = std::log(static_cast<double>(rope.original_positions));
  return rope.attention_factor.value_or(factor > 1 ? std::sqrt(1 + std::log(factor) / original) : 1);
}

}  // namespace phalanx::tune
