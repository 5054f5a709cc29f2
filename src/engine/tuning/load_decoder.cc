#include "engine/tuning/load_decoder.h"

#include <ATen/core/grad_mode.h>

#include "base/try.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::tuning {

base::Result<HollowDecoder> make_decoder(const std::string& folder) {
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/config.json", 1 << 20));
  TRY_ASSIGN(const tune::DecoderConfig config, tune::parse_decoder_config(text));
  TRY_ASSIGN(TensorFiles files, TensorFiles::open_folder(folder));
  // A folder whose config.json does not say it is tied if it has no head of its own.
  const bool tied = config.tied.value_or(!files.has("lm_head.weight"));
  HollowDecoder out{Decoder(config, tied), std::move(files), {}};
  std::vector<NamedShape> shapes;
  for (const auto& item : out.decoder->named_parameters()) {
    at::Tensor value = item.value();
    value.set_requires_grad(false);
    out.parameters.push_back({item.key(), value});
    shapes.push_back({item.key(), value.sizes().vec()});
  }
  std::vector<std::string> ignored;
  if (tied) ignored.emplace_back("lm_head.weight");
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
      auto read = hollow.files.read(one.name);
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
    if (target.dim() == 2 && hollow.files.type(one.name) == (bf16 ? at::kBFloat16 : at::kFloat)) {
      TRY_ASSIGN(const at::Tensor value, hollow.files.map(one.name));
      target.set_data(value);
    } else {
      TRY_ASSIGN(const at::Tensor value, hollow.files.read(one.name));
      target.copy_(value);
    }
    if (progress) progress(done, all);
  }
  return base::ok();
}

base::Result<Decoder> load_decoder(const std::string& folder, const BytesDone& progress) {
  TRY_ASSIGN(HollowDecoder hollow, make_decoder(folder));
  TRY(fill_decoder(hollow, true, progress));
  return hollow.decoder;
}

}  // namespace phalanx::engine::tuning
