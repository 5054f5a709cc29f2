#include "codes/config_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "base/yaml.h"

namespace phalanx::codes {
namespace {

using Test = Condition::Test;

constexpr std::array<std::string_view, 4> kFiles = {"accelerate", "deepspeed", "lightning", "llamafactory"};
constexpr std::array<std::string_view, 10> kFields = {"code", "file",    "ranks",   "when",    "default",
                                                      "keys", "section", "english", "chinese", "fix"};
constexpr std::array<std::string_view, 6> kSlots = {"file", "at", "path", "key", "name", "meant"};
constexpr size_t kSlotsOfAllRules = 3;
constexpr std::pair<std::string_view, Test> kTests[] = {
    {"is", Test::kIs},          {"is-not", Test::kIsNot}, {"given", Test::kGiven},      {"missing", Test::kMissing},
    {"no-text", Test::kNoText}, {"below", Test::kBelow},  {"at-least", Test::kAtLeast}, {"at-most", Test::kAtMost},
    {"seconds", Test::kSeconds}};

base::Error wrong(std::string what) { return base::fail(base::ErrorKind::kConfig, std::move(what)); }

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Words>
bool among(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_key(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == text.npos &&
         text.front() != '.' && text.back() != '.' && text.find("..") == text.npos;
}

// The slots of a text are known, and closed.
base::Status check_slots(std::string_view text, bool of_keys) {
  for (size_t at = text.find_first_of("{}"); at != text.npos; at = text.find_first_of("{}", at + 1)) {
    size_t end = text.find('}', at);
    if (text[at] == '}' || end == text.npos) return wrong(fmt::format("a bracket without its pair in \"{}\"", text));
    std::string_view slot = text.substr(at + 1, end - at - 1);
    auto known = std::find(kSlots.begin(), kSlots.end(), slot) - kSlots.begin();
    bool fits = known < static_cast<std::ptrdiff_t>(of_keys ? kSlots.size() : kSlotsOfAllRules) ||
                (!of_keys && slot.starts_with("=") && is_key(slot.substr(1))) ||
                (!of_keys && slot.starts_with("seconds ") && is_key(slot.substr(8)));
    if (!fits) return wrong(fmt::format("{{{}}} is no slot here", slot));
    at = end;
  }
  return base::ok();
}

class Reader {
 public:
  Reader(const base::Json& row, const std::set<std::string>& codes, const std::set<std::string>& sections)
      : row_(row), codes_(codes), sections_(sections) {}

  base::Result<WrittenRule> read() {
    if (!row_.is_object()) return wrong("is no object");
    for (auto it = row_.begin(); it != row_.end(); ++it)
      if (!among(kFields, it.key())) return wrong(fmt::format("{} is no field of a rule", it.key()));
    TRY(text("code", rule_.code, true));
    TRY(text("file", rule_.file, true));
    if (codes_.count(rule_.code) == 0) return wrong(rule_.code + " has no page");
    if (!among(kFiles, rule_.file)) return wrong(fmt::format("\"{}\" is no kind of file", rule_.file));
    if (row_.contains("ranks")) {
      std::optional<int64_t> ranks = base::get_int(row_, "ranks");
      if (!ranks || *ranks < 2) return wrong("ranks is a number from 2");
      rule_.ranks = *ranks;
    }
    TRY(row_.contains("keys") ? keys() : conditions());
    TRY(texts());
    return std::move(rule_);
  }

 private:
  base::Status text(const char* field, std::string& out, bool needed) {
    if (!needed && !row_.contains(field)) return base::ok();
    auto value = base::get_string(row_, field);
    if (!value || base::trim(*value).empty()) return wrong(fmt::format("{} is missing, or is no text", field));
    out = std::move(*value);
    return base::ok();
  }

  base::Status keys() {
    TRY(text("keys", rule_.keys, true));
    TRY(text("section", rule_.section, false));
    if (row_.contains("when") || row_.contains("default")) return wrong("keys and conditions are two rules");
    if (sections_.count(rule_.keys) == 0) return wrong(fmt::format("\"{}\" is no section of codes/values/config-keys.tsv", rule_.keys));
    if (!rule_.section.empty() && !is_key(rule_.section)) return wrong(fmt::format("\"{}\" is no key", rule_.section));
    return base::ok();
  }

  base::Status conditions() {
    auto when = row_.find("when");
    if (when == row_.end() || !when->is_array() || when->empty()) return wrong("needs when, a list of conditions, or keys");
    if (row_.contains("section")) return wrong("section goes with keys");
    for (const base::Json& one : *when) {
      if (!one.is_string()) return wrong("a condition is a text");
      TRY(parse_condition(one.get_ref<const std::string&>()));
      rule_.when += (rule_.when.empty() ? "" : "\n") + one.get<std::string>();
    }
    if (!row_.contains("default")) return base::ok();
    std::string value;
    TRY(text("default", value, true));
    std::vector<std::string_view> words = base::split(value, ' ');
    std::optional<int64_t> number = words.size() == 2 ? whole(words[1]) : std::nullopt;
    if (!number || !is_key(words[0])) return wrong("default is a key and a whole number");
    rule_.default_key = words[0];
    rule_.default_value = *number;
    return base::ok();
  }

  base::Status texts() {
    TRY(text("english", rule_.english, true));
    TRY(text("chinese", rule_.chinese, true));
    TRY(text("fix", rule_.fix, false));
    for (const std::string* t : {&rule_.english, &rule_.chinese, &rule_.fix}) TRY(check_slots(*t, !rule_.keys.empty()));
    return base::ok();
  }

  const base::Json& row_;
  const std::set<std::string>&codes_, &sections_;
  WrittenRule rule_;
};

}  // namespace

base::Result<Condition> parse_condition(std::string_view text) {
  std::vector<std::string_view> words = base::split(text, ' ');
  auto refuse = [&](std::string_view what) { return wrong(fmt::format("\"{}\": {}", text, what)); };
  if (words.size() < 2 || words.size() > 3 || !is_key(words[0])) return refuse("a condition is a key, a test and its value");
  auto test = std::find_if(std::begin(kTests), std::end(kTests), [&](const auto& t) { return t.first == words[1]; });
  if (test == std::end(kTests)) return refuse("no such test");
  Condition condition{words[0], test->second, {}};
  bool alone = condition.test == Test::kGiven || condition.test == Test::kMissing || condition.test == Test::kNoText;
  if (words.size() != (alone ? 2u : 3u)) return refuse(alone ? "the test has no value" : "the test needs a value");
  if (alone) return condition;
  std::string_view value = words[2];
  if (condition.test == Test::kIs || condition.test == Test::kIsNot) {
    condition.words = base::split(value, '|');
    if (among(condition.words, "")) return refuse("a value is empty");
    return condition;
  }
  size_t dots = condition.test == Test::kSeconds ? value.find("..") : value.size();
  std::optional<int64_t> low = whole(value.substr(0, std::min(dots, value.size())));
  std::optional<int64_t> high = condition.test != Test::kSeconds ? low : dots == value.npos ? std::nullopt : whole(value.substr(dots + 2));
  if (!low || !high || *low > *high) return refuse("not a number, or not a range");
  condition.low = *low;
  condition.high = *high;
  return condition;
}

base::Result<std::vector<WrittenRule>> parse_config_rules(std::string_view yaml, const std::set<std::string>& codes,
                                                          const std::set<std::string>& sections) {
  TRY_ASSIGN(base::Yaml list, base::parse_yaml(yaml));
  if (!list.value.is_array()) return wrong("is a list of rules");
  std::vector<WrittenRule> rules;
  for (const base::Json& row : list.value) {
    base::Result<WrittenRule> rule = Reader(row, codes, sections).read();
    if (!rule.ok()) return wrong(fmt::format("rule {}: {}", rules.size() + 1, rule.error().message));
    rules.push_back(std::move(rule).value());
  }
  return rules;
}

}  // namespace phalanx::codes
