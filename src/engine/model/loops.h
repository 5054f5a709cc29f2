// The model's own loops over memory, on CPU: plain pointers, no torch, no parameters of the model (those pass through at:: operators
// only, which is where a sharded model gathers them). bf16 values are given as their bits; arithmetic is in fp32.
#pragma once

#include <cstdint>

namespace phalanx::engine::model {

// y = gelu(x) with erf, as at::gelu(x, "none"), within 1e-6; x becomes the derivative at x, which is all that backward needs.
void gelu_and_slope(float* x, float* y, int64_t n);
void gelu_and_slope(uint16_t* x, uint16_t* y, int64_t n);

// Softmax of `n` scores in place, not divided by the sum; returns the sum of the exponentials. `most`: the largest score.
float exp_of_row(float* scores, int64_t n, float& most);
// scores become exp(score - log_sum).
void probabilities_of_row(float* scores, int64_t n, float log_sum);
// grads become probabilities · (grads - dot) · scale.
void softmax_backward_of_row(const float* probabilities, float* grads, int64_t n, float dot, float scale);

// One row of logits against its target class. Returns -log softmax(logits)[target]; with want_grad, the logits become the
// derivative of that, softmax(logits) - onehot(target).
double cross_entropy_of_row(float* logits, int64_t n, int64_t target, bool want_grad);
// The same for bf16 bits. `wide`: room for n floats.
double cross_entropy_of_row(uint16_t* logits, int64_t n, int64_t target, bool want_grad, float* wide);

// Rotary positions, in place, of `heads` heads side by side, `head` columns each: column j turns with j + half by the angle whose cosine is
// cos[j]; columns from 2 · half on stay. sign -1 turns back.
void rotate_heads(float* heads_of_row, int64_t heads, int64_t head, int64_t half, const float* cos, const float* sin, float sign);

// Soft caps: x becomes cap · tanh(x / cap). `slopes`: null, or room for the derivatives.
void cap_row(float* x, int64_t n, float cap, float* slopes);
void multiply_row(float* row, const float* factors, int64_t n);

// y = x / sqrt(mean(x²) + epsilon) · weight; returns the reciprocal of the root.
float rms_norm_row(const float* x, const float* weight, float* y, int64_t n, float epsilon);
// The gradient of x, given that of y; adds that of the weight to d_weight, unless that is null.
void rms_norm_backward_row(const float* x, const float* weight, const float* d_y, float inverse_root, float* d_x, float* d_weight,
                           int64_t n);

// y = silu(gate) · up; gate and up become the derivatives of y by each.
void gated_and_slopes(float* gate, float* up, float* y, int64_t n);
void gated_and_slopes(uint16_t* gate, uint16_t* up, uint16_t* y, int64_t n);
// The same with GELU by its approximation with tanh.
void gelu_gated_and_slopes(float* gate, float* up, float* y, int64_t n);
void gelu_gated_and_slopes(uint16_t* gate, uint16_t* up, uint16_t* y, int64_t n);

float dot(const float* a, const float* b, int64_t n);
void scale_row(float* row, int64_t n, float factor);
void widen(const uint16_t* from, float* to, int64_t n);
void narrow(const float* from, uint16_t* to, int64_t n);

}  // namespace phalanx::engine::model
