// A GPT: token and position embeddings, blocks of causal attention and MLP, and a head tied to the token embedding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/layers.h"

namespace phalanx::engine::model {

struct GptShape {
  int64_t vocabulary = 256;
  int64_t context = 128;  // tokens it can see at once
  int64_t layers = 4;
  int64_t heads = 4;  // divides width
  int64_t width = 128;
  double dropout = 0;  // in training: of the embeddings and of what each branch of a block adds
};

// How it is computed; the result does not depend on it, but for rounding between the kinds of kernels.
struct GptExecution {
  Kernels kernels = Kernels::kFused;
  bool recompute_blocks = false;  // activation checkpointing (recompute.h)
};

// What is summed over micro-batches and ranks before it is divided, so that every target token counts the same wherever it lies.
struct SummedLoss {
  at::Tensor sum;       // nats, fp32 scalar with a graph
  int64_t targets = 0;  // tokens that had a target
};

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const GptShape& shape, const GptExecution& execution = {});

  // GPT-2's initialisation: weights from N(0, 0.02), those that end a residual branch from N(0, 0.02 / sqrt(2·layers)),
  // biases 0, norms 1. The normals are drawn from a torch CPU generator with this seed, parameter after parameter in the
  // order of parameters(): tools/make_golden.py draws the same in Python.
  void init(uint64_t seed);

  at::Tensor forward(const at::Tensor& tokens);  // [batch, time <= context] int64 -> logits [batch, time, vocabulary]
  // Cross entropy over the targets, int64 of tokens' shape, that are not kNoTarget. On a GPU it waits for their count.
  static constexpr int64_t kNoTarget = -100;  // torch's ignore_index
  SummedLoss loss(const at::Tensor& tokens, const at::Tensor& targets);
  // The same without the count, and without waiting: a fp32 scalar with a graph.
  at::Tensor summed_loss(const at::Tensor& tokens, const at::Tensor& targets);

  GptShape shape;
  GptExecution execution;
  Embedding embed{nullptr};
  Embedding position{nullptr};
  std::vector<Block> blocks;
  LayerNorm norm{nullptr};

 private:
  at::Tensor hidden(const at::Tensor& tokens);  // behind the last norm
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

}  // namespace phalanx::engine::model
