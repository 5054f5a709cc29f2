#include "engine/optim/row_kernels.h"

#include <cmath>

#include "engine/short_floats.h"
#include "engine/vectorise.h"

namespace phalanx::engine::optim {
namespace {

PHALANX_INLINE float sign_of(float x) { return static_cast<float>(static_cast<int>(x > 0) - static_cast<int>(x < 0)); }

}  // namespace

PHALANX_VECTORISED void widen_bf16(const uint16_t* __restrict from, float* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = fp32_of_bf16(from[i]);
}

PHALANX_VECTORISED void widen_fp16(const uint16_t* __restrict from, float* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = fp32_of_fp16(from[i]);
}

PHALANX_VECTORISED void round_bf16(const float* __restrict from, uint16_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = bf16_of(from[i]);
}

PHALANX_VECTORISED void round_fp16(const float* __restrict from, uint16_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = fp16_of(from[i]);
}

PHALANX_VECTORISED void adamw(const AdamWPass& pass, float* __restrict params, const float* __restrict grads, float* __restrict mean,
                              float* __restrict variance, int64_t n) {
  const AdamWPass c = pass;
  for (int64_t i = 0; i < n; ++i) {
    const float g = grads[i] * c.grad_scale;
    const float m = mean[i] * c.beta1 + g * c.rest1;
    const float v = variance[i] * c.beta2 + (g * c.rest2) * g;
    mean[i] = m;
    variance[i] = v;
    params[i] = params[i] * c.keep + (m * c.minus_rate) / (std::sqrt(v) / c.root2 + c.epsilon);
  }
}

PHALANX_VECTORISED void sgd(const SgdPass& pass, float* __restrict params, const float* __restrict grads, int64_t n) {
  const SgdPass c = pass;
  for (int64_t i = 0; i < n; ++i) params[i] += (grads[i] * c.grad_scale + params[i] * c.decay) * c.minus_rate;
}

PHALANX_VECTORISED void sgd_momentum(const SgdPass& pass, float* __restrict params, const float* __restrict grads,
                                     float* __restrict momentum, int64_t n) {
  const SgdPass c = pass;
  for (int64_t i = 0; i < n; ++i) {
    const float d = grads[i] * c.grad_scale + params[i] * c.decay;
    const float moved = momentum[i] * c.momentum + d * c.rest;
    const float b = c.first ? d : moved;
    const float ahead = d + b * c.momentum;
    momentum[i] = b;
    params[i] += (c.nesterov ? ahead : b) * c.minus_rate;
  }
}

PHALANX_VECTORISED void lion(const LionPass& pass, float* __restrict params, const float* __restrict grads, float* __restrict mean,
                             int64_t n) {
  const LionPass c = pass;
  for (int64_t i = 0; i < n; ++i) {
    const float g = grads[i] * c.grad_scale, m = mean[i];
    params[i] = params[i] * c.keep + sign_of(m * c.beta1 + g * c.rest1) * c.minus_rate;
    mean[i] = m * c.beta2 + g * c.rest2;
  }
}

PHALANX_VECTORISED double sum_of_squares(const float* values, int64_t n) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  for (int64_t i = whole; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace phalanx::engine::optim
