#include "tune/tokenizer/add_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "tune/tokenizer/json_tree.h"

namespace phalanx::tune {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

// The functions below walk over text that has been parsed, so that it is well-formed JSON.

size_t skip_blank(std::string_view json, size_t at) { return std::min(json.find_first_not_of(kBlank, at), json.size()); }

size_t end_of_string(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return std::min(at + 1, json.size());
}

size_t end_of_value(std::string_view json, size_t at) {
  int depth = 0;
  while (at < json.size()) {
    const char c = json[at];
    if (c == '"') at = end_of_string(json, at);
    else ++at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > 0) continue;
    const char next = at < json.size() ? json[at] : '\0';
    if (c == '"' || c == '}' || c == ']' || next == ',' || next == '}' || kBlank.find(next) != std::string_view::npos) return at;
  }
  return at;
}

// The value of a key of the outermost object; nothing if it has no such key.
struct Value {
  size_t start = 0, end = 0;
};
std::optional<Value> find_value(std::string_view json, std::string_view key) {
  size_t at = skip_blank(json, skip_blank(json, 0) + 1);
  while (at < json.size() && json[at] == '"') {
    const size_t end = end_of_string(json, at);
    const std::string_view name = json.substr(at + 1, end - at - 2);
    const size_t start = skip_blank(json, skip_blank(json, end) + 1);  // behind the colon
    const Value value{start, end_of_value(json, start)};
    if (name == key) return value;
    at = skip_blank(json, value.end);
    if (at < json.size() && json[at] == ',') at = skip_blank(json, at + 1);
  }
  return std::nullopt;
}

std::string entry(const AddedToken& token) {
  const base::Json json = {{"id", token.id},  {"content", token.content},       {"single_word", false},    {"lstrip", false},
                           {"rstrip", false}, {"normalized", token.normalized}, {"special", token.special}};
  return "    " + base::to_text(json);
}

std::string with_entries(std::string_view json, const std::vector<AddedToken>& tokens) {
  std::vector<std::string> lines;
  for (const AddedToken& token : tokens) lines.push_back(entry(token));
  const std::string all = base::join(lines, ",\n");
  const auto list = find_value(json, "added_tokens");
  const size_t first = skip_blank(json, 0) + 1;
  if (!list) return fmt::format("{}\n  \"added_tokens\": [\n{}\n  ],{}", json.substr(0, first), all, json.substr(first));
  if (json[list->start] != '[') return fmt::format("{}[\n{}\n  ]{}", json.substr(0, list->start), all, json.substr(list->end));
  const size_t last = json.find_last_not_of(kBlank, list->end - 2);  // of the last entry, or the bracket of an empty list
  return fmt::format("{}{}\n{}\n  {}", json.substr(0, last + 1), json[last] == '[' ? "" : ",", all, json.substr(list->end - 1));
}

// What a file has, by its texts, and what it gets.
class Extension {
 public:
  explicit Extension(const TokenizerFile& file) {
    for (const auto& [content, id] : file.vocabulary) keep(content, id, false);
    for (const AddedToken& token : file.added) keep(token.content, token.id, true);
  }

  base::Status add(const std::string& content, bool special) {
    if (content.empty() || !base::is_utf8(content)) return bad_tokenizer(fmt::format("{} cannot be a token", base::quote(content)));
    auto [place, fresh] = known_.emplace(content, Known{next_, false});
    if (place->second.added) return base::ok();
    if (fresh && next_ >= kMaxTokens) return bad_tokenizer("it has no room for more tokens");
    if (fresh) out.fresh.push_back(next_++);
    place->second.added = true;
    out.added.push_back({.content = content, .id = place->second.id, .normalized = !special, .special = special});
    return base::ok();
  }

  ExtendedTokenizer out;

 private:
  struct Known {
    int32_t id = 0;
    bool added = false;
  };
  void keep(const std::string& content, int32_t id, bool added) {
    known_[content] = {id, added};
    next_ = std::max(next_, id + 1);
  }
  std::unordered_map<std::string, Known> known_;
  int32_t next_ = 0;
};

}  // namespace

base::Result<ExtendedTokenizer> add_tokens(std::string_view json, const std::vector<std::string>& plain,
                                           const std::vector<std::string>& special) {
  TRY_ASSIGN(const TokenizerFile file, parse_tokenizer(json));
  Extension extension(file);
  for (const std::string& token : plain) TRY(extension.add(token, false));
  for (const std::string& token : special) TRY(extension.add(token, true));
  if (extension.out.added.empty()) {
    extension.out.json = json;
    return std::move(extension.out);
  }
  // A key that is there twice, or written with escapes, hides what was added.
  extension.out.json = with_entries(json, extension.out.added);
  TRY_ASSIGN(const TokenizerFile after, parse_tokenizer(extension.out.json));
  if (after.added.size() != file.added.size() + extension.out.added.size()) return bad_tokenizer("its added_tokens cannot be extended");
  return std::move(extension.out);
}

}  // namespace phalanx::tune
