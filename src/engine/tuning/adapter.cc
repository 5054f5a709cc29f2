#include "engine/tuning/adapter.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/tuning/hf_folder.h"
#include "os/files.h"

namespace phalanx::engine::tuning {
namespace {

constexpr const char *kPrefix = "base_model.model.", *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";

std::vector<NamedTensor> adapter_tensors(Decoder& decoder, const tune::AdapterConfig& config) {
  std::vector<NamedTensor> out;
  for (auto& [name, projection] : decoder->projections()) {
    if (!projection->adapted()) continue;
    out.push_back({name + ".lora_A.weight", projection->lora_a});
    out.push_back({name + ".lora_B.weight", projection->lora_b});
  }
  for (const auto& item : decoder->named_parameters())
    if (tune::is_saved(config, item.key())) out.push_back({item.key(), item.value()});
  return out;
}

// Parameters of modules that are trained whole.
base::Status save_modules(Decoder& decoder, const tune::AdapterConfig& config) {
  for (const std::string& module : config.saved) {
    const tune::AdapterConfig alone{.saved = {module}};
    bool any = false;
    for (auto& item : decoder->named_parameters()) {
      if (!tune::is_saved(alone, item.key())) continue;
      if (item.key().find(".lora_") != std::string::npos)
        return base::fail(base::ErrorKind::kConfig, fmt::format("{} cannot have an adapter and be trained whole", item.key()));
      item.value().set_requires_grad(true);
      any = true;
    }
    if (!any) return base::fail(base::ErrorKind::kConfig, fmt::format("the model has no module {} to train whole", base::quote(module)));
  }
  return base::ok();
}

}  // namespace

base::Status add_adapters(Decoder& decoder, const tune::AdapterConfig& config, uint64_t seed) {
  at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(seed);
  for (at::Tensor& parameter : decoder->parameters()) parameter.set_requires_grad(false);
  bool any = false;
  for (auto& [name, projection] : decoder->projections()) {
    const auto shape = tune::adapter_of(config, name);
    if (!shape) continue;
    projection->add_adapter(shape->rank, shape->scale, config.dropout);
    const double bound = 1 / std::sqrt(static_cast<double>(projection->weight.size(1)));
    projection->lora_a.uniform_(-bound, bound, generator);
    projection->lora_b.zero_();
    any = true;
  }
  if (!any) return base::fail(base::ErrorKind::kConfig, "no projection of the model is a target of the adapter");
  return save_modules(decoder, config);
}

Changes changes_for(const tune::AdapterConfig& config) {
  return {.untied = tune::is_saved(config, kEmbedding) || tune::is_saved(config, kHead)};
}

base::Result<Changes> changes_for(const std::string& folder) {
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/adapter_config.json", 1 << 20));
  TRY_ASSIGN(const tune::AdapterConfig config, tune::parse_adapter_config(text));
  Changes out = changes_for(config);
  if (!out.untied) return out;
  TRY_ASSIGN(const TensorFiles files, TensorFiles::open_file(folder + "/adapter_model.safetensors"));
  for (const char* name : {kEmbedding, kHead})
    if (const std::string key = std::string(kPrefix) + name; files.has(key) && files.shape(key).size() == 2)
      out.vocabulary = std::max(out.vocabulary, files.shape(key)[0]);
  return out;
}

std::string name_in_adapter(const std::string& parameter) { return kPrefix + parameter; }

base::Result<tune::AdapterConfig> read_adapter(Decoder& decoder, const std::string& folder) {
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/adapter_config.json", 1 << 20));
  TRY_ASSIGN(tune::AdapterConfig config, tune::parse_adapter_config(text));
  TRY_ASSIGN(const TensorFiles files, TensorFiles::open_file(folder + "/adapter_model.safetensors"));
  TRY(add_adapters(decoder, config, 0));
  std::vector<NamedTensor> tensors = adapter_tensors(decoder, config);
  for (NamedTensor& one : tensors) one.name.insert(0, kPrefix);
  TRY(load_tensors(files, tensors, {}));
  return config;
}

base::Status write_adapter(const std::vector<NamedTensor>& parameters, const tune::AdapterConfig& config, const std::string& folder) {
  std::vector<checkpoint::TensorInfo> infos;
  std::vector<at::Tensor> values;
  for (const NamedTensor& one : parameters) {
    values.push_back(one.value.detach().to(at::kCPU, at::kFloat).contiguous());
    infos.push_back({kPrefix + one.name, "F32", values.back().sizes().vec(), 0, 0});
  }
  std::string file = checkpoint::make_safetensors_header(infos, {{"format", "pt"}});
  for (const at::Tensor& value : values) file.append(static_cast<const char*>(value.data_ptr()), value.nbytes());
  TRY(os::write_file_atomic(folder + "/adapter_model.safetensors", file, 0644));
  return os::write_file_atomic(folder + "/adapter_config.json", tune::to_text(config), 0644);
}

base::Status write_adapter(Decoder& decoder, const tune::AdapterConfig& config, const std::string& folder) {
  return write_adapter(adapter_tensors(decoder, config), config, folder);
}

void merge_adapters(Decoder& decoder) {
  at::NoGradGuard no_grad;
  for (auto& [name, projection] : decoder->projections()) {
    if (!projection->adapted()) continue;
    at::Tensor& weight = projection->weight;
    weight.copy_(weight.to(at::kFloat) + projection->adapter_product());
    projection->drop_adapter();
  }
  for (at::Tensor& parameter : decoder->parameters()) parameter.set_requires_grad(false);
}

}  // namespace phalanx::engine::tuning
