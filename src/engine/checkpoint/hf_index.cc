#include "engine/checkpoint/hf_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/unicode.h"

namespace phalanx::engine::checkpoint {
namespace {

constexpr size_t kMaxIndexBytes = 64 << 20;

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, "not a model's safetensors index").because(std::move(why)); }

}  // namespace

std::string model_file(size_t number, size_t count) {
  return count == 1 ? std::string(kOneModelFile) : fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

std::string to_text(const ModelIndex& index) {
  // Written piece by piece: a tree of our JSON type looks for each new key among all the others.
  std::string text = fmt::format("{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{", index.total_size);
  bool first = true;
  for (const auto& [tensor, file] : index.weight_map) {
    text += fmt::format("{}\n    {}: {}", first ? "" : ",", base::to_text(base::Json(tensor)), base::to_text(base::Json(file)));
    first = false;
  }
  return text + (first ? "}\n}\n" : "\n  }\n}\n");
}

base::Result<ModelIndex> parse_model_index(std::string_view text) {
  if (text.size() > kMaxIndexBytes) return bad(fmt::format("it has {} bytes; the limit is {}", text.size(), kMaxIndexBytes));
  // Not base::Json: that one keeps the order of its keys and looks for each among all the others.
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad("it is not a JSON object");
  ModelIndex index;
  auto metadata = json.find("metadata");
  if (metadata != json.end() && metadata->is_object() && metadata->contains("total_size")) {
    const nlohmann::json& size = (*metadata)["total_size"];
    if (!size.is_number_unsigned()) return bad("total_size is not a whole number of bytes");
    index.total_size = size.get<uint64_t>();
  }
  auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) return bad("it has no weight_map");
  for (auto item = map->begin(); item != map->end(); ++item) {
    if (!item->is_string()) return bad(fmt::format("tensor {} has no file name", base::quote(item.key())));
    const std::string& file = item->get_ref<const std::string&>();
    if (file.empty() || file == "." || file == ".." || file.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return bad(fmt::format("tensor {} is in {}, which is not the name of a file in the same folder", base::quote(item.key()),
                             base::quote(file)));
    index.weight_map.emplace(item.key(), file);
  }
  return index;
}

std::vector<size_t> split_by_size(const std::vector<uint64_t>& tensor_bytes, uint64_t max_bytes) {
  std::vector<size_t> starts;
  uint64_t filled = 0;
  for (size_t i = 0; i < tensor_bytes.size(); ++i) {
    if (starts.empty() || tensor_bytes[i] > max_bytes - std::min(filled, max_bytes)) {
      starts.push_back(i);
      filled = 0;
    }
    filled += tensor_bytes[i];
  }
  return starts;
}

}  // namespace phalanx::engine::checkpoint
