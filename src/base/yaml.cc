// The only source of the launcher that is compiled with exceptions (src/CMakeLists.txt), because yaml-cpp reports by them.
// Events are taken instead of yaml-cpp's nodes: limits hold while reading, and an alias is a bounded copy instead of a graph.
#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxTreeDepth = 8;
constexpr size_t kMaxValues = 100'000;

struct Refused : std::exception {
  Refused(YAML::Mark where, std::string text) : mark(where), message(std::move(text)) {}
  YAML::Mark mark;
  std::string message;
};

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  for (std::string_view item : list)
    if (item == word) return true;
  return false;
}

// A whole number, or null: "10", "-3", "1_000", "0x1f", "0o17", "017".
Json whole(std::string_view word) {
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  int radix = 10;
  if (word.starts_with("0x")) radix = 16, word.remove_prefix(2);
  else if (word.starts_with("0o")) radix = 8, word.remove_prefix(2);
  else if (word.size() > 1 && word[0] == '0') radix = 8, word.remove_prefix(1);
  std::string digits = replace_all(word, "_", "");
  if (digits.empty() || word[0] == '_' || digits[0] == '-') return nullptr;
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (error != std::errc() || end != digits.data() + digits.size()) return nullptr;
  return negative ? -value : value;
}

Json real(std::string_view word) {
  if (one_of(word, {".inf", "+.inf", "-.inf", ".nan"})) return std::string(word);  // JSON has no such numbers
  if (word.starts_with('+')) word.remove_prefix(1);
  if (word.empty() || word.find_first_not_of("0123456789.eE+-_") != std::string_view::npos) return nullptr;
  if (word.find_first_of("0123456789") == std::string_view::npos) return nullptr;
  double value = 0;
  std::string digits = replace_all(word, "_", "");
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return nullptr;
  return value;
}

Json plain(const std::string& word) {
  if (word.empty() || one_of(word, {"~", "null", "Null", "NULL"})) return nullptr;
  if (word.size() <= 5) {
    std::string lower = to_lower(word);
    if (one_of(lower, {"true", "yes", "on"})) return true;
    if (one_of(lower, {"false", "no", "off"})) return false;
  }
  if (word.size() > 64) return word;
  if (Json number = whole(word); !number.is_null()) return number;
  if (Json number = real(word); !number.is_null()) return number;
  return word;
}

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(Yaml& out) : out_(out) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, anchor, nullptr, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused(mark, "an alias inside what it names");
    count(mark, found->second.second);
    add_value(mark, found->second.first, "*");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    add(mark, anchor, tag == "?" || tag.empty() ? plain(value) : Json(value), value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, Json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Json value;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    size_t values_before = 0;
    bool has_key = false;
    std::string key;
    std::string path;                 // of the level itself
    std::set<std::string> inherited;  // keys that came from a merge: a key of the mapping's own may replace them
  };

  void count(const YAML::Mark& mark, size_t more) {
    values_ += more;
    if (values_ > kMaxValues) throw Refused(mark, counted("more than {} values, aliases put in", kMaxValues));
  }
  void add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, const std::string& text) {
    count(mark, 1);
    if (anchor) anchors_[anchor] = {value, 1};
    add_value(mark, std::move(value), text);
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Json empty) {
    count(mark, 1);
    if (levels_.size() >= kMaxDepth) throw Refused(mark, counted("nested deeper than {} levels", kMaxDepth));
    Level level;
    if (!levels_.empty()) {
      const Level& above = levels_.back();
      if (above.value.is_object() && !above.has_key) throw Refused(mark, "a key must be one word");
      level.path = above.value.is_object() ? name(above) : above.path;
    }
    level.value = std::move(empty);
    level.anchor = anchor;
    level.mark = mark;
    level.values_before = values_ - 1;
    levels_.push_back(std::move(level));
  }
  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.anchor) anchors_[level.anchor] = {level.value, values_ - level.values_before};
    add_value(level.mark, std::move(level.value), "");
  }
  static std::string name(const Level& level) { return level.path.empty() ? level.key : level.path + "." + level.key; }

  void add_value(const YAML::Mark& mark, Json value, const std::string& text) {
    if (levels_.empty()) {
      out_.value = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
      return;
    }
    if (!level.has_key) {
      if (value.is_structured()) throw Refused(mark, "a key must be one word");
      level.key = text == "*" && value.is_string() ? value.get_ref<const std::string&>() : text;
      level.has_key = true;
      if (level.path.size() + level.key.size() < 512) out_.lines[name(level)] = mark.line + 1;
      return;
    }
    level.has_key = false;
    if (level.key == "<<" && value.is_structured()) return merge(level, value);
    if (level.value.contains(level.key) && level.inherited.erase(level.key) == 0 && out_.twice.size() < 64)
      out_.twice.push_back(name(level));
    level.value[level.key] = std::move(value);
  }

  // "<<: *base" and "<<: [*a, *b]": keys the mapping does not have yet.
  static void merge(Level& level, const Json& value) {
    if (value.is_array()) {
      for (const Json& one : value) merge(level, one);
      return;
    }
    for (auto it = value.begin(); value.is_object() && it != value.end(); ++it) {
      if (level.value.contains(it.key())) continue;
      level.value[it.key()] = it.value();
      level.inherited.insert(it.key());
    }
  }

  Yaml& out_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, std::pair<Json, size_t>> anchors_;  // value and how many values it holds
  size_t values_ = 0;
};

// The tree of parse_yaml_tree.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, YamlNode& out) : text_(text), out_(out) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, YamlNode::Kind::kNull, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { throw Refused(mark, "aliases (*name) are not supported here"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    if (tag == "!") refuse_open_quote(mark);
    if (value.find('\0') != std::string::npos) throw Refused(mark, "the value contains a zero byte");
    if (value == "<<" && tag == "?") throw Refused(mark, "merge keys (<<) are not supported here");
    add(mark, YamlNode::Kind::kText, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    open(mark, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    open(mark, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode node;
    std::set<std::string> names;
  };

  static void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor) throw Refused(mark, "anchors (&name) are not supported here");
    if (!tag.empty() && tag != "?" && tag != "!") throw Refused(mark, "tags (!name) are not supported here");
  }
  // yaml-cpp takes the end of the text for the closing quote, so one that was forgotten would swallow the rest of the file.
  void refuse_open_quote(const YAML::Mark& mark) const {
    const size_t begin = mark.pos < 0 ? text_.size() : static_cast<size_t>(mark.pos);
    if (begin >= text_.size() || (text_[begin] != '\'' && text_[begin] != '"')) return;  // a block: | or >
    for (size_t i = begin + 1; i < text_.size(); ++i) {
      const bool escape = text_[begin] == '"' ? text_[i] == '\\' : text_[i] == '\'' && text_.substr(i + 1, 1) == "'";
      if (escape) ++i;
      else if (text_[i] == text_[begin]) return;
    }
    throw Refused(mark, "the quote is not closed");
  }
  static bool wants_key(const YamlNode& node) { return node.kind == YamlNode::Kind::kMap && node.keys.size() == node.items.size(); }

  YamlNode place(const YAML::Mark& mark, YamlNode::Kind kind, std::string text) {
    if (++values_ > kMaxValues) throw Refused(mark, counted("more than {} values", kMaxValues));
    return {kind, std::move(text), mark.line + 1, mark.column + 1, {}, {}};
  }
  void add(const YAML::Mark& mark, YamlNode::Kind kind, std::string text) {
    YamlNode node = place(mark, kind, std::move(text));
    if (levels_.empty()) {
      out_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (!wants_key(level.node)) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (node.kind != YamlNode::Kind::kText) throw Refused(mark, "a key is missing before ':'");
    if (!level.names.insert(node.text).second) throw Refused(mark, fmt::format("{} is given twice", quote(node.text, 60)));
    level.node.keys.push_back(std::move(node));
  }
  void open(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (levels_.size() >= kMaxTreeDepth) throw Refused(mark, counted("nested deeper than {} levels", kMaxTreeDepth));
    if (!levels_.empty() && wants_key(levels_.back().node)) throw Refused(mark, "a key must be one word");
    levels_.push_back({place(mark, kind, ""), {}});
  }
  void close() {
    YamlNode node = std::move(levels_.back().node);
    levels_.pop_back();
    if (levels_.empty()) out_ = std::move(node);
    else levels_.back().node.items.push_back(std::move(node));
  }

  std::string_view text_;
  YamlNode& out_;
  std::vector<Level> levels_;
  size_t values_ = 0;
};

// Whether a second document begins. yaml-cpp 0.7's reader of many documents can loop for ever on broken input, so it is not asked.
bool second_document(std::string_view text) {
  bool content = false;
  for (std::string_view line : split_lines(text)) {
    const bool begins = line == "---" || line.starts_with("--- ");
    if (content && begins) return true;
    std::string_view trimmed = trim(line);
    content = content || begins || (!trimmed.empty() && trimmed.front() != '#' && trimmed.front() != '%');
  }
  return false;
}

Error at(const YAML::Mark& mark, std::string_view what) {
  std::string line = std::string(what.substr(0, 200));
  if (mark.is_null()) return fail(ErrorKind::kConfig, std::move(line));
  return fail(ErrorKind::kConfig, fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, line));
}

size_t count_lines(std::string_view text) { return 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

Status read_document(std::string_view text, size_t max_bytes, YAML::EventHandler& handler) {
  if (text.size() > max_bytes)
    return fail(ErrorKind::kConfig, counted("YAML of {} bytes is larger than the limit of {}", text.size(), max_bytes));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(handler);
    return ok();
  } catch (const Refused& refused) { return at(refused.mark, refused.message); } catch (const YAML::Exception& failure) {
    return at(failure.mark, failure.msg);
  } catch (const std::exception& failure) { return fail(ErrorKind::kConfig, failure.what()); }
}

}  // namespace

Result<Yaml> parse_yaml(std::string_view text, size_t max_bytes) {
  Yaml result;
  Builder builder(result);
  TRY(read_document(text, max_bytes, builder));
  result.more_documents = second_document(text);
  return result;
}

Result<YamlNode> parse_yaml_tree(std::string_view text, size_t max_bytes) {
  // yaml-cpp would end the text at a zero byte, or take it for UTF-16.
  if (size_t zero = text.substr(0, max_bytes).find('\0'); zero != std::string_view::npos)
    return fail(ErrorKind::kConfig, fmt::format("line {}: a zero byte: this is no text in UTF-8", count_lines(text.substr(0, zero))));
  if (text.size() <= max_bytes && !is_utf8(text)) {
    int number = 0;
    for (std::string_view line : split_lines(text)) {
      ++number;
      if (!is_utf8(line)) return fail(ErrorKind::kConfig, fmt::format("line {}: this is no text in UTF-8", number));
    }
  }
  YamlNode root;
  TreeBuilder builder(text, root);
  TRY(read_document(text, max_bytes, builder));
  if (second_document(text)) return fail(ErrorKind::kConfig, "there is a second document (after '---'); one is expected");
  return root;
}

}  // namespace phalanx::base
