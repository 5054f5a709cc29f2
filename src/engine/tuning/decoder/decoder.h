// A decoder of Hugging Face's kind. Its parameters have the names of the files: model.layers.0.self_attn.q_proj.weight.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/gpt.h"
#include "engine/tuning/decoder/parts.h"

namespace phalanx::engine::tuning {

// The keys and values of all layers, for generation.
struct DecoderCache {
  std::vector<KeyValues> layers;
  int64_t length = 0;  // tokens
};

struct DecoderImpl : torch::nn::Module {
  // `tied`: the head is the embedding; there is no lm_head.
  DecoderImpl(const tune::DecoderConfig& config, bool tied);

  // tokens [batch, time] int64; shorter rows are padded on the right, where what comes out means nothing.
  at::Tensor forward(const at::Tensor& tokens, DecoderCache* cache = nullptr);  // logits [batch, time, vocabulary]
  // Cross entropy of every token that is followed by a label, which is not model::GptImpl::kNoTarget: labels [batch, time] as in data, not
  // shifted.
  model::SummedLoss loss(const at::Tensor& tokens, const at::Tensor& labels);

  // Every projection of the layers by its name, "model.layers.0.self_attn.q_proj", in their order.
  std::vector<std::pair<std::string, Projection>> projections();

  tune::DecoderConfig config;
  bool tied;
  model::Embedding embed_tokens{nullptr};
  std::vector<DecoderLayer> layers;
  RmsNorm norm{nullptr};
  Projection lm_head{nullptr};  // null if tied

 private:
  at::Tensor hidden(const at::Tensor& tokens, DecoderCache* cache);  // behind the last norm
  const at::Tensor& head() const { return tied ? embed_tokens->weight : lm_head->weight; }
  at::Tensor frequencies_;
};
TORCH_MODULE(Decoder);

}  // namespace phalanx::engine::tuning
