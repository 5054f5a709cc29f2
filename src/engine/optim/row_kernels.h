// The loops over memory behind the optimizers and the gradient norm: plain pointers, no torch. n elements each; nothing may overlap.
#pragma once

#include <cstdint>

namespace phalanx::engine::optim {

// 16-bit to fp32: exact.
void widen_bf16(const uint16_t* from, float* to, int64_t n);
void widen_fp16(const uint16_t* from, float* to, int64_t n);
// fp32 to 16 bits: to the nearest, ties to even, as torch rounds. NaN stays NaN; fp16 overflows to infinity.
void round_bf16(const float* from, uint16_t* to, int64_t n);
void round_fp16(const float* from, uint16_t* to, int64_t n);

// torch.optim.AdamW: p *= keep; m = m·beta1 + g·rest1; v = v·beta2 + (g·rest2)·g; p += m·minus_rate / (sqrt(v) / root2 + epsilon)
struct AdamWPass {
  float grad_scale, keep, beta1, rest1, beta2, rest2, root2, epsilon, minus_rate;
};
void adamw(const AdamWPass& pass, float* params, const float* grads, float* mean, float* variance, int64_t n);

// torch.optim.SGD: d = g + p·decay; with momentum: b = first ? d : b·momentum + d·rest, d = nesterov ? d + b·momentum : b; p +=
// d·minus_rate
struct SgdPass {
  float grad_scale, decay, momentum, rest, minus_rate;
  bool first, nesterov;
};
void sgd(const SgdPass& pass, float* params, const float* grads, int64_t n);
void sgd_momentum(const SgdPass& pass, float* params, const float* grads, float* momentum, int64_t n);

// Lion (arXiv 2302.06675): p *= keep; p += sign(m·beta1 + g·rest1)·minus_rate; m = m·beta2 + g·rest2. sign(0) is 0.
struct LionPass {
  float grad_scale, keep, beta1, rest1, beta2, rest2, minus_rate;
};
void lion(const LionPass& pass, float* params, const float* grads, float* mean, int64_t n);

// In double, in an order that depends on n alone.
double sum_of_squares(const float* values, int64_t n);

}  // namespace phalanx::engine::optim
