#include "engine/train/model_files.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "engine/checkpoint/reader.h"

namespace phalanx::engine::train {
namespace {

using Shape = std::vector<int64_t>;

const checkpoint::Extent* find(const checkpoint::Reader& reader, const std::string& name) {
  auto found = reader.tensors().find("model." + name);
  return found == reader.tensors().end() ? nullptr : &found->second;
}

std::string torch_name(std::string_view dtype) {
  if (dtype == "F32") return "float32";
  if (dtype == "BF16") return "bfloat16";
  if (dtype == "F16") return "float16";
  if (dtype == "F64") return "float64";
  return "";
}

// The tensors of gpt.cc and their shapes.
std::map<std::string, Shape> expected(int64_t vocabulary, int64_t context, int64_t layers, int64_t width) {
  std::map<std::string, Shape> shapes{
      {"embed.weight", {vocabulary, width}}, {"position.weight", {context, width}}, {"norm.weight", {width}}, {"norm.bias", {width}}};
  for (int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("block{}.", i);
    for (const char* norm : {"norm1", "norm2"})
      for (const char* part : {".weight", ".bias"}) shapes[block + norm + part] = {width};
    for (const auto& [name, rows, columns] : {std::tuple{"attention.qkv", 3 * width, width}, std::tuple{"attention.out", width, width},
                                              std::tuple{"up", 4 * width, width}, std::tuple{"down", width, 4 * width}}) {
      shapes[block + name + ".weight"] = {rows, columns};
      shapes[block + name + ".bias"] = {rows};
    }
  }
  return shapes;
}

base::Status matches(const checkpoint::Reader& reader, const std::map<std::string, Shape>& shapes) {
  size_t stored = 0;
  for (const auto& [name, extent] : reader.tensors()) stored += name.starts_with("model.") ? 1 : 0;
  base::Error wrong =
      base::fail(base::ErrorKind::kConfig, fmt::format("the checkpoint {} contradicts itself", base::quote(reader.path(), 400)));
  for (const auto& [name, shape] : shapes) {
    const checkpoint::Extent* extent = find(reader, name);
    if (!extent) return std::move(wrong).because(fmt::format("its configuration describes a tensor {} that it does not have", name));
    if (extent->shape != shape)
      return std::move(wrong).because(fmt::format("its tensor {} has shape [{}], but its configuration describes [{}]", name,
                                                  fmt::join(extent->shape, ", "), fmt::join(shape, ", ")));
  }
  if (stored == shapes.size()) return base::ok();
  return std::move(wrong).because(fmt::format("it has {} tensors of the model, but its configuration describes {}", stored, shapes.size()));
}

}  // namespace

base::Result<std::vector<checkpoint::SmallFile>> model_files(const checkpoint::Reader& reader, std::string_view dtype) {
  const base::Json& state = reader.common_state();
  const checkpoint::Extent* embed = find(reader, "embed.weight");
  const base::Json config = state.is_object() ? state.value("config", base::Json::object()) : base::Json::object();
  if (base::get_string(state, "program") != "phalanx-train" || !embed || embed->shape.size() != 2)
    return std::vector<checkpoint::SmallFile>{};
  const auto layers = base::get_int(config, "model.layers"), heads = base::get_int(config, "model.heads");
  const auto width = base::get_int(config, "model.width"), context = base::get_int(config, "model.context");
  if (!layers || !heads || !width || !context || *layers < 1 || *layers > 100'000) return std::vector<checkpoint::SmallFile>{};
  const int64_t vocabulary = embed->shape[0];
  if (base::Status same = matches(reader, expected(vocabulary, *context, *layers, *width)); !same.ok()) return std::move(same).error();
  const base::Json json = {
      {"format", "phalanx-model"},
      {"version", 1},
      {"model_type", "phalanx_gpt"},
      {"written_by", "phalanx-train"},
      {"step", reader.step()},
      {"vocabulary", vocabulary},
      {"context", *context},
      {"layers", *layers},
      {"heads", *heads},
      {"width", *width},
      {"hidden", 4 * *width},
      {"dropout", base::get_number(config, "model.dropout").value_or(0)},
      {"dtype", torch_name(dtype.empty() ? embed->dtype : dtype)},
      {"tokens", vocabulary == 256 ? "bytes" : "ids"},
      {"norm", "layer_norm"},
      {"norm_position", "before"},
      {"norm_epsilon", 1e-5},
      {"activation", "gelu"},
      {"activation_formula", "x * 0.5 * (1 + erf(x / sqrt(2)))"},
      {"position_embedding", "learned"},
      {"attention", "causal"},
      {"qkv_layout", "query, key, value"},
      {"linear_layout", "[out, in]"},
      {"tied_head", true},
  };
  return std::vector<checkpoint::SmallFile>{{"config.json", base::to_text(json, 2) + "\n"},
                                            {"phalanx_gpt.py", std::string(kPhalanxGptPython)}};
}

}  // namespace phalanx::engine::train
