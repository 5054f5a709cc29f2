// The layers our models are made of: plain torch::nn modules that call the at:: operations Python's layers call, so that
// losses agree with Python's to the last printed digits.
//
// Why not torch::nn::Linear: libtorch 1.13's C++ one is matmul and then +=, not at::linear: one more pass over the output
// and other rounding in short types. Parameters are made empty; the model fills them (init), so the order in which random
// numbers are drawn is the model's own and can be written down in a test.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace phalanx::engine::model {

// kFused: one pass per layer where there is one: fused.h on CPU, on GPUs device_attention.h, and the head's loss. kPlain: at:: operators of
// one step each.
enum class Kernels { kFused, kPlain };

struct LinearImpl : torch::nn::Module {
  LinearImpl(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]
};
TORCH_MODULE(Linear);

struct LayerNormImpl : torch::nn::Module {
  explicit LayerNormImpl(int64_t width);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(LayerNorm);

struct EmbeddingImpl : torch::nn::Module {
  EmbeddingImpl(int64_t rows, int64_t width);
  at::Tensor forward(const at::Tensor& ids);
  at::Tensor weight;  // [rows, width]
};
TORCH_MODULE(Embedding);

// Multi-head self-attention in which position i sees 0..i.
struct CausalAttentionImpl : torch::nn::Module {
  CausalAttentionImpl(int64_t width, int64_t heads, Kernels kernels);
  at::Tensor forward(const at::Tensor& x);  // [batch, time, width]
  int64_t heads;
  Kernels kernels;
  Linear qkv{nullptr};
  Linear out{nullptr};

 private:
  at::Tensor plain(const at::Tensor& all);
  at::Tensor mask_;  // [time, time]: 0 where i sees j, -inf elsewhere; made when first needed
};
TORCH_MODULE(CausalAttention);

// x + attention(norm(x)), then x + mlp(norm(x)). Dropout, in training, on what each branch adds.
struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t width, int64_t heads, double dropout, Kernels kernels);
  at::Tensor forward(const at::Tensor& x);
  double dropout;
  Kernels kernels;
  LayerNorm norm1{nullptr};
  CausalAttention attention{nullptr};
  LayerNorm norm2{nullptr};
  Linear up{nullptr};
  Linear down{nullptr};
};
TORCH_MODULE(Block);

}  // namespace phalanx::engine::model
