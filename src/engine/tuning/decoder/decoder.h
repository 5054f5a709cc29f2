// A decoder of Hugging Face's kind. Its parameters have the names of the files: model.layers.0.self_attn.q_proj.weight.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/gpt.h"
#include "engine/tuning/decoder/parts.h"

namespace phalanx::engine::tuning {

// The keys and values of all layers of one sequence, for generation.
struct DecoderCache {
  std::vector<KeyValues> layers;
  int64_t length = 0;  // tokens
};

// Sequences laid end to end: i is tokens starts[i] to starts[i + 1], where the last is the number of tokens. None is empty.
struct Sequences {
  at::Tensor tokens;  // [tokens] int64, on the host, as labels are
  std::vector<int64_t> starts;
  std::vector<int64_t> positions{};     // of each token; empty: counted from the start of its sequence
  std::vector<int64_t> label_starts{};  // like starts: a token's successor has a label for it within these only; empty: starts
  const std::vector<int64_t>& rows() const { return label_starts.empty() ? starts : label_starts; }
};

// Of each row of labels: the sum of log p of those that count, and how many there are.
struct RowLogs {
  at::Tensor sums;  // [rows] fp32
  std::vector<int64_t> counts;
};

struct DecoderImpl : torch::nn::Module {
  // `tied`: the head is the embedding; there is no lm_head.
  DecoderImpl(const tune::DecoderConfig& config, bool tied);

  // tokens [batch, time] int64, of one row if there is a cache.
  at::Tensor forward(const at::Tensor& tokens, DecoderCache* cache = nullptr);  // logits [batch, time, vocabulary]
  // Cross entropy of every token that is followed by a label, which is not model::GptImpl::kNoTarget: labels [tokens] as in data, not
  // shifted.
  model::SummedLoss loss(const Sequences& rows, const at::Tensor& labels);
  RowLogs log_probabilities(const Sequences& rows, const at::Tensor& labels);  // labels as above

  // Every projection of the layers by its name, "model.layers.0.self_attn.q_proj", in their order.
  std::vector<std::pair<std::string, Projection>> projections();

  tune::DecoderConfig config;
  bool tied;
  model::Embedding embed_tokens{nullptr};
  std::vector<DecoderLayer> layers;
  RmsNorm norm{nullptr};
  Projection lm_head{nullptr};               // null if tied
  void set_kernels(model::Kernels kernels);  // of every layer; fused at first
  void bypass_adapters(bool bypass);         // they are there, but change nothing

 private:
  at::Tensor hidden(const Sequences& rows, DecoderCache* cache);  // behind the last norm: [tokens, hidden]
  at::Tensor capped(const at::Tensor& logits) const;
  at::Tensor summed_loss(const at::Tensor& x, const at::Tensor& wanted);  // of tokens that all have a label
  const at::Tensor& head() const { return tied ? embed_tokens->weight : lm_head->weight; }
  model::Kernels kernels_ = model::Kernels::kFused;
};
TORCH_MODULE(Decoder);

}  // namespace phalanx::engine::tuning
