#include "engine/tuning/load_decoder.h"

#include "base/try.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::tuning {

base::Result<Decoder> load_decoder(const std::string& folder, const BytesDone& progress) {
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/config.json", 1 << 20));
  TRY_ASSIGN(const tune::DecoderConfig config, tune::parse_decoder_config(text));
  TRY_ASSIGN(const TensorFiles files, TensorFiles::open_folder(folder));
  // A folder whose config.json does not say it is tied if it has no head of its own.
  const bool tied = config.tied.value_or(!files.has("lm_head.weight"));
  Decoder decoder(config, tied);
  std::vector<NamedTensor> parameters;
  for (const auto& item : decoder->named_parameters()) {
    item.value().set_requires_grad(false);
    parameters.push_back({item.key(), item.value()});
  }
  std::vector<std::string> ignored;
  if (tied) ignored.emplace_back("lm_head.weight");
  TRY(load_tensors(files, parameters, ignored, progress));
  decoder->eval();
  return decoder;
}

}  // namespace phalanx::engine::tuning
