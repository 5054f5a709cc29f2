#include "engine/tuning/load_decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "base/try.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::tuning {

namespace {

constexpr const char *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";

// The tensor of the files that a parameter begins as.
std::string source_of(const HollowDecoder& hollow, const std::string& parameter) {
  return parameter == kHead && !hollow.files.has(kHead) ? kEmbedding : parameter;
}

// A matrix with a row for every token: fresh ones are the mean of the others and some noise, as LLaMA-Factory has it
// (src/llamafactory/model/model_utils/embedding.py).
at::Tensor with_fresh_rows(const at::Tensor& from, const HollowDecoder& hollow, bool head) {
  const int64_t known = from.size(0), rows = hollow.decoder->config.vocabulary;
  std::vector<int32_t> fresh = hollow.changes.fresh;
  for (int64_t row = known; row < rows; ++row) fresh.push_back(static_cast<int32_t>(row));
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  const auto width = from.size(1);
  at::Tensor out = at::empty({rows, width}, at::TensorOptions().dtype(at::kFloat));
  at::Tensor sum = at::zeros({width}, at::TensorOptions().dtype(at::kDouble));
  int64_t meant = 0;
  out.narrow(0, 0, known).copy_(from);
  for (int64_t row = 0; row < known; ++row) {
    if (std::binary_search(fresh.begin(), fresh.end(), static_cast<int32_t>(row))) continue;
    sum += out[row];
    ++meant;
  }
  const at::Tensor mean = (sum / static_cast<double>(std::max<int64_t>(meant, 1))).to(at::kFloat);
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(hollow.changes.seed * 2 + (head ? 1 : 0));
  for (int32_t row : fresh) {
    at::Tensor target = out[row];
    target.normal_(0, 1 / std::sqrt(static_cast<double>(width)), generator);
    target += mean;
  }
  return out;
}

base::Result<at::Tensor> read_value(const HollowDecoder& hollow, const std::string& parameter) {
  const std::string source = source_of(hollow, parameter);
  TRY_ASSIGN(at::Tensor value, hollow.files.read(source));
  const bool by_token = source == kEmbedding || source == kHead;
  if (!by_token || (hollow.changes.fresh.empty() && value.size(0) == hollow.decoder->config.vocabulary)) return value;
  return with_fresh_rows(value, hollow, source == kHead);
}

bool may_be_mapped(const HollowDecoder& hollow, const NamedTensor& one, at::ScalarType type) {
  const std::string source = source_of(hollow, one.name);
  const bool same = hollow.files.shape(source) == one.value.sizes() && hollow.changes.fresh.empty();
  return one.value.dim() == 2 && !one.value.requires_grad() && hollow.files.type(source) == type &&
         (same || (source != kEmbedding && source != kHead));
}

}  // namespace

base::Result<HollowDecoder> make_decoder(const std::string& folder, const Changes& changes) {
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/config.json", 1 << 20));
  TRY_ASSIGN(tune::DecoderConfig config, tune::parse_decoder_config(text));
  const int64_t known = config.vocabulary;
  config.vocabulary = std::max(known, changes.vocabulary);
  TRY_ASSIGN(TensorFiles files, TensorFiles::open_folder(folder));
  // A folder whose config.json does not say it is tied if it has no head of its own.
  const bool tied = config.tied.value_or(!files.has(kHead));
  HollowDecoder out{Decoder(config, tied && !changes.untied), std::move(files), {}, changes};
  std::vector<NamedShape> shapes;
  for (const auto& item : out.decoder->named_parameters()) {
    at::Tensor value = item.value();
    value.set_requires_grad(false);
    out.parameters.push_back({item.key(), value});
    if (tied && item.key() == kHead) continue;  // of no file
    shapes.push_back({item.key(), value.sizes().vec()});
    if (item.key() == kEmbedding || item.key() == kHead) shapes.back().shape[0] = known;
  }
  std::vector<std::string> ignored;
  if (tied) ignored.emplace_back(kHead);
  TRY(compare_tensors(out.files, shapes, ignored));
  out.decoder->eval();
  return out;
}

base::Status fill_decoder(const HollowDecoder& hollow, bool reads, const BytesDone& progress) {
  at::NoGradGuard no_grad;
  uint64_t done = 0, all = 0;
  for (const NamedTensor& one : hollow.parameters) all += one.value.nbytes();
  base::Status status = base::ok();
  for (const NamedTensor& one : hollow.parameters) {
    at::Tensor target = one.value, value;
    if (reads && status.ok()) {
      auto read = read_value(hollow, one.name);
      if (read.ok()) value = *read;
      else status = read.error();
    }
    if (value.defined()) target.copy_(value);
    else target.zero_();
    done += target.nbytes();
    if (progress) progress(done, all);
  }
  return status;
}

base::Status map_decoder(const HollowDecoder& hollow, bool bf16, const BytesDone& progress) {
  at::NoGradGuard no_grad;
  uint64_t done = 0, all = 0;
  for (const NamedTensor& one : hollow.parameters) all += one.value.nbytes();
  for (const NamedTensor& one : hollow.parameters) {
    at::Tensor target = one.value;
    done += target.nbytes();
    if (may_be_mapped(hollow, one, bf16 ? at::kBFloat16 : at::kFloat)) {
      TRY_ASSIGN(const at::Tensor value, hollow.files.map(source_of(hollow, one.name)));
      target.set_data(value);
    } else {
      TRY_ASSIGN(const at::Tensor value, read_value(hollow, one.name));
      target.copy_(value);
    }
    if (progress) progress(done, all);
  }
  return base::ok();
}

base::Result<Decoder> load_decoder(const std::string& folder, const BytesDone& progress, const Changes& changes) {
  TRY_ASSIGN(HollowDecoder hollow, make_decoder(folder, changes));
  TRY(fill_decoder(hollow, true, progress));
  return hollow.decoder;
}

}  // namespace phalanx::engine::tuning
