// A GPT: token and position embeddings, blocks of causal attention and MLP, and a head tied to the token embedding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/layers.h"

namespace engine::model {

struct GptShape {
  int64_t vocabulary = 256;
  int64_t context = 128;  // tokens it can see at once
  int64_t layers = 4;
  int64_t heads = 4;  // divides width
  int64_t width = 128;
};

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const GptShape& shape);

  // GPT-2's initialisation: weights from N(0, 0.02), those that end a residual branch from N(0, 0.02 / sqrt(2·layers)),
  // biases 0, norms 1. The normals are drawn from a torch CPU generator with this seed, parameter after parameter in the
  // order of parameters(): tools/make_golden.py draws the same in Python. Call it before moving the model to a GPU.
  void init(uint64_t seed);

  at::Tensor forward(const at::Tensor& tokens);                          // [batch, time] int64 -> logits [batch, time, vocabulary]
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets);  // mean cross entropy, nats per token

  GptShape shape;
  Embedding embed{nullptr};
  Embedding position{nullptr};
  std::vector<Block> blocks;
  LayerNorm norm{nullptr};
};
TORCH_MODULE(Gpt);

// `count` tokens that continue `prompt` (not empty), drawn one at a time with softmax(logits / temperature) over the
// top_k most likely (0: all); temperature 0 takes the most likely. Deterministic for a seed.
struct SampleOptions {
  int64_t count = 0;
  double temperature = 1.0;
  int64_t top_k = 0;
  uint64_t seed = 0;
};
std::vector<int64_t> generate(Gpt& gpt, const std::vector<int64_t>& prompt, const SampleOptions& options);

}  // namespace engine::model
