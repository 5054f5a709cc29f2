#include "doctor/config_rules.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "codes/config_rule.h"
#include "doctor/views/command_view.h"
#include "doctor/views/known_keys.h"

namespace phalanx::doctor {
namespace {

using codes::Condition;
using codes::ConfigRule;

// "00:10:00", or a number of seconds.
std::optional<int64_t> seconds(const base::Json* value) {
  if (!value) return std::nullopt;
  if (value->is_number_integer()) return value->get<int64_t>();
  if (!value->is_string()) return std::nullopt;
  int64_t total = 0;
  for (std::string_view part : base::split(value->get_ref<const std::string&>(), ':')) {
    if (!whole_number(part) || total > 1'000'000) return std::nullopt;
    total = total * 60 + std::stoll(std::string(part));
  }
  return total;
}

// A rule's view of one file.
class Matcher {
 public:
  Matcher(const Situation& situation, const ConfigRule& rule, const UserConfig& config) : s_(situation), rule_(rule), config_(config) {}

  void apply(Findings& findings) {
    if (!rule_.keys.empty()) return misspelt(findings);
    std::string_view first;
    for (std::string_view line : base::split(rule_.when, '\n')) {
      base::Result<Condition> condition = codes::parse_condition(line);
      PHALANX_CHECK(condition.ok());  // the compiler of codes/ has read it
      if (!holds(*condition)) return;
      if (first.empty()) first = condition->key;
    }
    at_ = config_.place(s_, std::string(first));
    say(findings);
  }

 private:
  // The value of a key, or its default.
  const base::Json* value(std::string_view key) const {
    const base::Json* found = value_at(config_.value, key);
    if (key == rule_.default_key && (!found || !found->is_number_integer())) return &default_;
    return found;
  }

  static bool is(const base::Json& value, std::string_view word) {
    if (word == "true" || word == "false") return value == (word == "true");
    if (value.is_string()) return value.get_ref<const std::string&>() == word;
    return value.is_number_integer() && base::to_text(value) == word;
  }

  bool holds(const Condition& c) const {
    using Test = Condition::Test;
    const base::Json* v = value(c.key);
    bool is_one = v && std::any_of(c.words.begin(), c.words.end(), [&](std::string_view word) { return is(*v, word); });
    double number = v && v->is_number() ? v->get<double>() : 0;
    switch (c.test) {
      case Test::kIs: return is_one;
      case Test::kIsNot: return !is_one;
      case Test::kGiven: return v != nullptr;
      case Test::kMissing: return v == nullptr;
      case Test::kNoText: return !v || !v->is_string();
      case Test::kBelow: return v && v->is_number() && number < static_cast<double>(c.low);
      case Test::kAtLeast: return v && v->is_number() && number >= static_cast<double>(c.low);
      case Test::kAtMost: return v && v->is_number() && number <= static_cast<double>(c.low);
      case Test::kSeconds: {
        std::optional<int64_t> time = seconds(v);
        return time && *time >= c.low && *time <= c.high;
      }
    }
    return false;
  }

  void misspelt(Findings& findings) {
    const base::Json* object = rule_.section.empty() ? &config_.value : value_at(config_.value, rule_.section);
    if (!object) return;
    for (Misspelt& m : misspelt_keys(*object, rule_.keys)) {
      misspelt_ = std::move(m);
      key_ = rule_.section.empty() ? misspelt_.key : std::string(rule_.section) + "." + misspelt_.key;
      at_ = config_.place(s_, key_);
      say(findings);
    }
  }

  std::string slot(std::string_view name) const {
    if (name == "file") return shown(s_, config_.file.file->path);
    if (name == "path") return base::shell_quote(config_.file.file->path);
    if (name == "at") return at_;
    if (name == "key") return key_;
    if (name == "name") return misspelt_.key;
    if (name == "meant") return misspelt_.meant;
    if (name.starts_with("seconds ")) return std::to_string(seconds(value(name.substr(8))).value_or(0));
    const base::Json* v = value(name.substr(1));
    return !v ? "" : v->is_string() ? v->get<std::string>() : base::to_text(*v);
  }

  std::string fill(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      size_t open = std::min(text.find('{'), text.size());
      out += text.substr(0, open);
      text.remove_prefix(open);
      if (text.empty()) break;
      size_t close = text.find('}');
      out += slot(text.substr(1, close - 1));
      text.remove_prefix(close + 1);
    }
    return out;
  }

  void say(Findings& findings) const {
    tell(findings, s_, config_.file.hosts, {fill(rule_.english), fill(rule_.chinese)}, fill(rule_.fix));
  }

  const Situation& s_;
  const ConfigRule& rule_;
  const UserConfig& config_;
  base::Json default_ = rule_.default_value;
  std::string at_, key_;
  Misspelt misspelt_;
};

}  // namespace

void check_config_rules(const Situation& situation, Findings& findings) {
  std::vector<std::string_view> kinds;
  for (const ConfigRule& rule : codes::config_rules())
    if (rule.code == findings.row().code && std::find(kinds.begin(), kinds.end(), rule.file) == kinds.end()) kinds.push_back(rule.file);
  for (std::string_view kind : kinds)
    for (const UserConfig& config : user_configs(situation, kind))
      for (const ConfigRule& rule : codes::config_rules())
        if (rule.code == findings.row().code && rule.file == kind && situation.job.world >= rule.ranks)
          Matcher(situation, rule, config).apply(findings);
}

}  // namespace phalanx::doctor
