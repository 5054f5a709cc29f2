#include "base/json.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace phalanx::base {
namespace {

constexpr int kMaxDepth = 64;

// Depth by brackets outside strings: a cheap guard in front of the parser, whose tree is freed recursively.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

Result<Json> parse_json(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes)
    return fail(ErrorKind::kConfig, counted("JSON of {} bytes is larger than the limit of {}", text.size(), max_bytes));
  if (too_deep(text)) return fail(ErrorKind::kConfig, counted("JSON is nested deeper than {} levels", kMaxDepth));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::kConfig, "not valid JSON");
  return json;
}

std::string to_text(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::optional<std::string> get_string(const Json& object, std::string_view key) {
  const Json* v = find(object, key);
  if (!v || !v->is_string()) return std::nullopt;
  return v->get<std::string>();
}
std::optional<int64_t> get_int(const Json& object, std::string_view key) {
  const Json* v = find(object, key);
  if (!v || !v->is_number_integer()) return std::nullopt;
  return v->get<int64_t>();
}
std::optional<double> get_number(const Json& object, std::string_view key) {
  const Json* v = find(object, key);
  if (!v || !v->is_number()) return std::nullopt;
  return v->get<double>();
}
std::optional<bool> get_bool(const Json& object, std::string_view key) {
  const Json* v = find(object, key);
  if (!v || !v->is_boolean()) return std::nullopt;
  return v->get<bool>();
}
const Json& get_list(const Json& object, std::string_view key) {
  static const Json kNone = Json::array();
  const Json* v = find(object, key);
  return v && v->is_array() ? *v : kNone;
}
std::vector<std::string> get_strings(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  for (const Json& item : get_list(object, key))
    if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

}  // namespace phalanx::base
