#include "engine/tuning/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <set>

#include "engine/require.h"

namespace phalanx::engine::tuning {
namespace {

// Draws from the logits of one position, as transformers' warpers in their order: temperature, top_k, top_p.
int64_t draw(const at::Tensor& logits, const GenerateOptions& options, at::Generator& generator) {
  if (options.temperature <= 0) return at::argmax(logits).item<int64_t>();
  const int64_t keep = options.top_k > 0 ? std::min(options.top_k, logits.size(0)) : logits.size(0);
  auto [values, ids] = at::topk(logits / options.temperature, keep);
  at::Tensor probabilities = at::softmax(values, -1);
  if (options.top_p < 1) {
    // One whose more likely neighbours already reach top_p is left out; the first never is.
    at::Tensor before = probabilities.cumsum(-1) - probabilities;
    probabilities = probabilities.masked_fill(before >= options.top_p, 0);
  }
  return ids[at::multinomial(probabilities, 1, false, generator).item<int64_t>()].item<int64_t>();
}

void penalise(at::Tensor* logits, const std::set<int64_t>& seen, double penalty) {
  const at::Tensor ids = at::tensor(std::vector<int64_t>(seen.begin(), seen.end()));
  const at::Tensor values = logits->index_select(0, ids);
  logits->index_copy_(0, ids, at::where(values < 0, values * penalty, values / penalty));
}

}  // namespace

std::vector<int64_t> generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options) {
  require(!prompt.empty(), "the prompt is empty");
  at::NoGradGuard no_grad;
  const bool was_training = decoder->is_training();
  decoder->eval();
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(options.seed);
  DecoderCache cache;
  std::vector<int64_t> out, next = prompt;
  std::set<int64_t> seen(prompt.begin(), prompt.end());
  while (static_cast<int64_t>(out.size()) < options.max_new_tokens) {
    at::Tensor logits = decoder(at::tensor(next).unsqueeze(0), &cache).select(1, static_cast<int64_t>(next.size()) - 1).squeeze(0);
    logits = logits.to(at::kCPU, at::kFloat);
    if (options.repetition_penalty != 1) penalise(&logits, seen, options.repetition_penalty);
    out.push_back(draw(logits, options, generator));
    seen.insert(out.back());
    next = {out.back()};
    if (options.progress && !options.progress(out)) break;
    if (std::find(options.stops.begin(), options.stops.end(), out.back()) != options.stops.end()) break;
  }
  decoder->train(was_training);
  return out;
}

}  // namespace phalanx::engine::tuning
