#include "engine/model/loops.h"

#include <bit>
#include <cmath>

#include "engine/short_floats.h"
#include "engine/vectorise.h"

namespace phalanx::engine::model {
namespace {

// e^x within 2 units in the last place: 2^n · e^r with |r| <= ln 2 / 2 and the polynomial of Cephes' expf. Below -87.3, where the result
// would be subnormal, 0; from 88.3 on, that of 88.3 (softmax asks for x <= 0 only).
PHALANX_INLINE float exponential(float x) {
  constexpr float kRound = 0x1.8p23f;  // its sum with a small number has that number, rounded, in the low bits
  const float inside = x > 88.3f ? 88.3f : x < -87.3f ? -87.3f : x;
  const float shifted = inside * 1.44269504f + kRound;
  const float whole = shifted - kRound;
  const float r = (inside - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound) + 127) << 23;
  const float result = p * std::bit_cast<float>(power);
  return x < -87.3f ? 0 : result;
}

struct GeluAt {
  float value, slope;
};
// The normal distribution's integral beyond |x| is its density times a smooth function of t = 1 / (1 + 0.3 |x|), here a polynomial fitted
// to 3.4e-9 of its value for |x| <= 14. So it is as exact in the tails as in the middle, and its errors have no sign of their own: of the
// shorter ones in use (Abramowitz & Stegun 7.1.26: 1.5e-7) a trained model's small gradients show the bias.
PHALANX_INLINE GeluAt gelu_at(float x) {
  const float bell = exponential(-0.5f * x * x), size = std::fabs(x);
  const float t = 1 / (1 + 0.3f * size);
  float p = -0.020611079409718513f;
  p = p * t + 0.11236588656902313f;
  p = p * t + -0.22804322838783264f;
  p = p * t + 0.19154776632785797f;
  p = p * t + -0.07921769469976425f;
  p = p * t + 0.09604105353355408f;
  p = p * t + 0.07843170060085297f;
  p = p * t + 0.11022593080997467f;
  p = p * t + 0.11957301944494247f;
  p = p * t + 0.11968662589788437f;
  const float beyond = p * t * bell;  // the integral from size to infinity
  const float cdf = x > 0 ? 1 - beyond : beyond;
  const float value = size > 13 && x < 0 ? 0.0f : x * cdf;  // -inf * 0 is no number
  return {value, cdf + x * (0.398942280f * bell)};
}

struct GatedAt {
  float value, gate_slope, up_slope;
};
PHALANX_INLINE GatedAt gated_at(float gate, float up) {
  const float sigmoid = 1 / (1 + exponential(-gate)), silu = gate * sigmoid;
  return {silu * up, up * (sigmoid + silu * (1 - sigmoid)), silu};
}

// x/2 · (1 + tanh u) with u = sqrt(2 / pi) · (x + 0.044715 x³), which is x · sigmoid(2 u).
PHALANX_INLINE GatedAt gelu_gated_at(float gate, float up) {
  constexpr float kTwice = 2 * 0.79788456080286536f, kCube = 0.044715f;
  const float square = gate * gate, sigmoid = 1 / (1 + exponential(-kTwice * gate * (1 + kCube * square)));
  const float gelu = gate * sigmoid, slope = sigmoid + gelu * (1 - sigmoid) * kTwice * (1 + 3 * kCube * square);
  return {gelu * up, up * slope, gelu};
}

// Within 1e-7 of its value for small x too, where 1 - 2 / (e^2x + 1) would cancel.
PHALANX_INLINE float hyperbolic_tangent(float x) {
  const float square = x * x;
  const float series = x * (1 + square * (-1 / 3.0f + square * (2 / 15.0f + square * (-17 / 315.0f + square * (62 / 2835.0f)))));
  const float quotient = 1 - 2 / (exponential(2 * x) + 1);
  return square < 0.04f ? series : quotient;
}

// Sums and maxima in 16 lanes: the order is fixed, and the compiler may keep the lanes in registers.
using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16;
PHALANX_INLINE void load(Lanes& lanes, const float* from) { __builtin_memcpy(&lanes, from, sizeof lanes); }

PHALANX_INLINE float largest(const float* values, int64_t n) {
  float most = values[0];
  int64_t i = 0;
  if (n >= kLanes) {
    Lanes best, next;
    load(best, values);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      load(next, values + i);
      best = next > best ? next : best;
    }
    for (int lane = 0; lane < kLanes; ++lane) most = best[lane] > most ? best[lane] : most;
  }
  for (; i < n; ++i) most = values[i] > most ? values[i] : most;
  return most;
}

PHALANX_INLINE float total(const float* values, int64_t n) {
  Lanes sums = {}, next;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(next, values + i);
    sums += next;
  }
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < n; ++i) sum += values[i];
  return sum;
}

PHALANX_INLINE float product(const float* a, const float* b, int64_t n) {
  Lanes sums = {}, x, y;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(x, a + i);
    load(y, b + i);
    sums += x * y;
  }
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

PHALANX_INLINE float exp_in_place(float* scores, int64_t n, float& most) {
  const float m = largest(scores, n);
  for (int64_t i = 0; i < n; ++i) scores[i] = exponential(scores[i] - m);
  most = m;
  return total(scores, n);
}

PHALANX_INLINE double cross_entropy(float* logits, int64_t n, int64_t target, bool want_grad) {
  const double wanted = logits[target];
  float most = 0;
  const float sum = exp_in_place(logits, n, most);
  if (want_grad) {
    const float inverse = 1 / sum;
    for (int64_t i = 0; i < n; ++i) logits[i] *= inverse;
    logits[target] -= 1;
  }
  return std::log(static_cast<double>(sum)) + static_cast<double>(most) - wanted;
}

}  // namespace

PHALANX_VECTORISED void gelu_and_slope(float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GeluAt at = gelu_at(x[i]);
    y[i] = at.value;
    x[i] = at.slope;
  }
}

PHALANX_VECTORISED void gelu_and_slope(uint16_t* __restrict x, uint16_t* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GeluAt at = gelu_at(fp32_of_bf16(x[i]));
    y[i] = bf16_of(at.value);
    x[i] = bf16_of(at.slope);
  }
}

PHALANX_VECTORISED float exp_of_row(float* scores, int64_t n, float& most) { return exp_in_place(scores, n, most); }

PHALANX_VECTORISED void probabilities_of_row(float* scores, int64_t n, float log_sum) {
  for (int64_t i = 0; i < n; ++i) scores[i] = exponential(scores[i] - log_sum);
}

PHALANX_VECTORISED void softmax_backward_of_row(const float* __restrict probabilities, float* __restrict grads, int64_t n, float dot,
                                                float scale) {
  for (int64_t i = 0; i < n; ++i) grads[i] = probabilities[i] * (grads[i] - dot) * scale;
}

PHALANX_VECTORISED double cross_entropy_of_row(float* logits, int64_t n, int64_t target, bool want_grad) {
  return cross_entropy(logits, n, target, want_grad);
}

PHALANX_VECTORISED double cross_entropy_of_row(uint16_t* __restrict logits, int64_t n, int64_t target, bool want_grad,
                                               float* __restrict wide) {
  for (int64_t i = 0; i < n; ++i) wide[i] = fp32_of_bf16(logits[i]);
  const double loss = cross_entropy(wide, n, target, want_grad);
  if (want_grad)
    for (int64_t i = 0; i < n; ++i) logits[i] = bf16_of(wide[i]);
  return loss;
}

PHALANX_VECTORISED void rotate_heads(float* heads_of_row, int64_t heads, int64_t head, int64_t half, const float* __restrict cos,
                                     const float* __restrict sin, float sign) {
  for (int64_t one = 0; one < heads; ++one) {
    float *first = heads_of_row + one * head, *second = first + half;
    for (int64_t i = 0; i < half; ++i) {
      const float a = first[i], b = second[i], turn = sign * sin[i];
      first[i] = a * cos[i] - b * turn;
      second[i] = b * cos[i] + a * turn;
    }
  }
}

PHALANX_VECTORISED float rms_norm_row(const float* __restrict x, const float* __restrict weight, float* __restrict y, int64_t n,
                                      float epsilon) {
  const float inverse_root = 1 / std::sqrt(product(x, x, n) / static_cast<float>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * inverse_root * weight[i];
  return inverse_root;
}

PHALANX_VECTORISED void rms_norm_backward_row(const float* __restrict x, const float* __restrict weight, const float* __restrict d_y,
                                              float inverse_root, float* __restrict d_x, float* __restrict d_weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) d_x[i] = d_y[i] * weight[i];
  const float along = product(d_x, x, n) * inverse_root * inverse_root / static_cast<float>(n);
  for (int64_t i = 0; i < n; ++i) d_x[i] = (d_x[i] - x[i] * along) * inverse_root;
  if (d_weight)
    for (int64_t i = 0; i < n; ++i) d_weight[i] += d_y[i] * (x[i] * inverse_root);
}

PHALANX_VECTORISED void gated_and_slopes(float* __restrict gate, float* __restrict up, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GatedAt at = gated_at(gate[i], up[i]);
    y[i] = at.value;
    gate[i] = at.gate_slope;
    up[i] = at.up_slope;
  }
}

PHALANX_VECTORISED void gated_and_slopes(uint16_t* __restrict gate, uint16_t* __restrict up, uint16_t* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GatedAt at = gated_at(fp32_of_bf16(gate[i]), fp32_of_bf16(up[i]));
    y[i] = bf16_of(at.value);
    gate[i] = bf16_of(at.gate_slope);
    up[i] = bf16_of(at.up_slope);
  }
}

PHALANX_VECTORISED void gelu_gated_and_slopes(float* __restrict gate, float* __restrict up, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GatedAt at = gelu_gated_at(gate[i], up[i]);
    y[i] = at.value;
    gate[i] = at.gate_slope;
    up[i] = at.up_slope;
  }
}

PHALANX_VECTORISED void gelu_gated_and_slopes(uint16_t* __restrict gate, uint16_t* __restrict up, uint16_t* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const GatedAt at = gelu_gated_at(fp32_of_bf16(gate[i]), fp32_of_bf16(up[i]));
    y[i] = bf16_of(at.value);
    gate[i] = bf16_of(at.gate_slope);
    up[i] = bf16_of(at.up_slope);
  }
}

PHALANX_VECTORISED void cap_row(float* __restrict x, int64_t n, float cap, float* __restrict slopes) {
  const float inverse = 1 / cap;
  for (int64_t i = 0; i < n; ++i) {
    const float share = hyperbolic_tangent(x[i] * inverse);
    x[i] = cap * share;
    if (slopes) slopes[i] = 1 - share * share;
  }
}

PHALANX_VECTORISED void multiply_row(float* __restrict row, const float* __restrict factors, int64_t n) {
  for (int64_t i = 0; i < n; ++i) row[i] *= factors[i];
}

PHALANX_VECTORISED float dot(const float* a, const float* b, int64_t n) { return product(a, b, n); }

PHALANX_VECTORISED void scale_row(float* row, int64_t n, float factor) {
  for (int64_t i = 0; i < n; ++i) row[i] *= factor;
}

PHALANX_VECTORISED void widen(const uint16_t* __restrict from, float* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = fp32_of_bf16(from[i]);
}

PHALANX_VECTORISED void narrow(const float* __restrict from, uint16_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = bf16_of(from[i]);
}

}  // namespace phalanx::engine::model
