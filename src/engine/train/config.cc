#include "engine/train/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "words/said.h"

namespace phalanx::engine::train {
namespace {

constexpr size_t kMaxConfigBytes = 256 << 10;

base::Error at_place(std::string_view name, const YAML::Mark& mark, std::string what, base::ErrorKind kind = base::ErrorKind::kConfig) {
  std::string place = mark.is_null() ? std::string(name) : fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
  return base::fail(kind, fmt::format("{}: {}", place, what));
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Sets one key from its text; the error's message has no place in front yet.
base::Status assign(const Setting& setting, const std::string& text) {
  auto wrong = [&](std::string wanted) {
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} is {}, but must be {}", setting.key, base::quote(text, 60), wanted));
  };
  if (auto* whole = std::get_if<int64_t*>(&setting.value)) {
    auto value = base::parse_int(text, static_cast<int64_t>(setting.min), static_cast<int64_t>(setting.max));
    if (!value.ok()) return wrong(fmt::format("a whole number from {:.0f} to {:.0f}", setting.min, setting.max));
    **whole = *value;
  } else if (auto* real = std::get_if<double*>(&setting.value)) {
    auto value = parse_number(text);
    if (!value || *value < setting.min || *value > setting.max)
      return wrong(fmt::format("a number from {} to {}", setting.min, setting.max));
    **real = *value;
  } else {
    if (!setting.choices.empty() && !base::is_listed(text, setting.choices, '|'))
      return wrong(fmt::format("one of {}", base::replace_all(setting.choices, "|", ", ")));
    *std::get<std::string*>(setting.value) = text;
  }
  return base::ok();
}

// The names that may stand in `section` ("" is the top): keys, and at the top the sections themselves.
std::vector<std::string> names_in(const std::vector<Setting>& table, std::string_view section) {
  std::vector<std::string> names;
  for (const Setting& setting : table) {
    size_t dot = setting.key.find('.');
    std::string_view head = dot == std::string_view::npos ? "" : setting.key.substr(0, dot);
    if (head == section) names.emplace_back(head.empty() ? setting.key : setting.key.substr(dot + 1));
    else if (section.empty() && (names.empty() || names.back() != head)) names.emplace_back(head);
  }
  return names;
}

base::Error unknown_key(base::Error error, std::string_view key, const std::vector<std::string>& known) {
  std::string hint = fmt::format("known here: {}", base::join(known, ", "));
  if (auto near = base::closest(key, known)) hint = fmt::format("did you mean {}?", base::quote(*near));
  return std::move(error).with_hint(hint);
}

const Setting* find(const std::vector<Setting>& table, std::string_view key) {
  for (const Setting& setting : table)
    if (setting.key == key) return &setting;
  return nullptr;
}

class Reader {
 public:
  Reader(const std::vector<Setting>& table, std::string_view name) : table_(table), name_(name) {}

  base::Status section(const YAML::Node& node, const std::string& prefix) {
    for (const auto& pair : node) {
      if (!pair.first.IsScalar()) return at_place(name_, pair.first.Mark(), "a key must be plain text");
      const std::string& word = pair.first.Scalar();
      const std::string key = prefix.empty() ? word : prefix + "." + word;
      const YAML::Mark mark = pair.first.Mark();
      auto [first, fresh] = seen_.emplace(key, mark.line + 1);
      if (!fresh) return at_place(name_, mark, fmt::format("{} is given twice, first in line {}", base::quote(key), first->second));
      TRY(entry(pair.second, key, word, prefix, mark));
    }
    return base::ok();
  }

 private:
  base::Status entry(const YAML::Node& value, const std::string& key, const std::string& word, const std::string& prefix, YAML::Mark mark) {
    if (const Setting* setting = find(table_, key)) {
      if (!value.IsScalar()) return at_place(name_, mark, fmt::format("{} needs one value", key));
      auto status = assign(*setting, value.Scalar());
      if (!status.ok()) return at_place(name_, value.Mark(), status.error().message);
      return base::ok();
    }
    const bool is_section = prefix.empty() && !names_in(table_, word).empty();
    if (!is_section)
      return unknown_key(at_place(name_, mark, fmt::format("unknown key {}", base::quote(key))), word, names_in(table_, prefix));
    if (!value.IsMap()) return at_place(name_, mark, fmt::format("{} must be a section: keys with values below it", base::quote(word)));
    return section(value, word);
  }

  const std::vector<Setting>& table_;
  std::string_view name_;
  std::map<std::string, int> seen_;  // key -> line
};

// The line in which a second document begins or the first one ends early, 0 if there is none. yaml-cpp 0.7's own reader of
// many documents can loop for ever on broken input, and its reader of one stops silently behind the first.
int second_document(std::string_view text) {
  bool content = false;
  int number = 0;
  for (std::string_view line : base::split_lines(text)) {
    ++number;
    const bool begins = line == "---" || line.starts_with("--- "), ends = line == "..." || line.starts_with("... ");
    if (content && (begins || ends)) return number;
    std::string_view trimmed = base::trim(line);
    content = content || begins || (!trimmed.empty() && trimmed.front() != '#' && trimmed.front() != '%');
  }
  return 0;
}

base::Status read_yaml(std::string_view text, std::string_view name, const std::vector<Setting>& table) {
  if (text.size() > kMaxConfigBytes)
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("{}: the config has {} bytes; the limit is {}", name, text.size(), kMaxConfigBytes));
  if (int line = second_document(text))
    return base::fail(base::ErrorKind::kConfig, fmt::format("{}:{}:1: a config is one YAML document", name, line));
  try {  // yaml-cpp reports by exceptions
    const YAML::Node document = YAML::Load(std::string(text));
    if (!document || document.IsNull()) return base::ok();
    if (!document.IsMap()) return at_place(name, document.Mark(), "a config is a list of `key: value` lines");
    return Reader(table, name).section(document, "");
  } catch (const YAML::Exception& failure) { return at_place(name, failure.mark, fmt::format("not valid YAML: {}", failure.msg)); }
}

base::Status read_arguments(const std::vector<std::string>& arguments, const std::vector<Setting>& table) {
  for (const std::string& argument : arguments) {
    size_t equals = argument.find('=');
    if (equals == std::string::npos)
      return base::fail(base::ErrorKind::kUsage, fmt::format("argument {} is not KEY=VALUE", base::quote(argument)));
    std::string key = argument.substr(0, equals);
    const Setting* setting = find(table, key);
    if (!setting) {
      std::vector<std::string> known;
      for (const Setting& one : table) known.emplace_back(one.key);
      return unknown_key(
          base::fail(base::ErrorKind::kUsage, fmt::format("argument {}: unknown key {}", base::quote(argument), base::quote(key))), key,
          known);
    }
    auto status = assign(*setting, argument.substr(equals + 1));
    if (!status.ok())
      return base::fail(base::ErrorKind::kUsage, fmt::format("argument {}: {}", base::quote(argument), status.error().message));
  }
  return base::ok();
}

base::Error impossible(std::string what) { return base::fail(base::ErrorKind::kConfig, std::move(what)); }

base::Status check_data(const Config::Data& data) {
  if (data.corpus.empty() && data.files.empty())
    return impossible("data.corpus is not set, and neither is data.files").with_hint("set it to a text file: data.corpus=FILE");
  if (!data.corpus.empty() && !data.files.empty())
    return impossible("data.corpus and data.files are both set").with_hint("keep data.files; data.corpus is short for text files");
  if (!data.corpus.empty() && data.format != "auto" && data.format != "text")
    return impossible(fmt::format("data.format is {}, but data.corpus is plain text", data.format))
        .with_hint("name the file in data.files");
  if (data.streaming == "on" && data.remainder == "pad")
    return impossible("data.remainder=pad cannot be combined with data.streaming=on")
        .because("the length of a stream is not known in advance");
  if (!data.prompt_field.empty() && data.prompt_field == data.field)
    return impossible(fmt::format("data.field and data.prompt_field are both {}", base::quote(data.field)));
  return base::ok();
}

base::Status check_together(const Config& c) {
  TRY(check_data(c.data));
  if (c.model.width % c.model.heads != 0)
    return impossible(fmt::format("model.width {} is not a multiple of model.heads {}", c.model.width, c.model.heads));
  if (c.model.context % c.data.pad_multiple != 0)  // the longest rows would be padded beyond it
    return impossible(fmt::format("model.context {} is not a multiple of data.pad_multiple {}", c.model.context, c.data.pad_multiple));
  if (c.train.batch % c.train.accumulate != 0)
    return impossible(fmt::format("train.batch {} is not a multiple of train.accumulate {}", c.train.batch, c.train.accumulate));
  if (c.optimizer.min_lr > c.optimizer.lr)
    return impossible(fmt::format("optimizer.min_lr {} is above optimizer.lr {}", c.optimizer.min_lr, c.optimizer.lr));
  if (c.sample.bytes > 0 && c.sample.prompt.empty()) return impossible("sample.prompt is empty; a sample needs at least one character");
  return base::ok();
}

std::string text_of(const Setting& setting) {
  if (auto* whole = std::get_if<int64_t*>(&setting.value)) return fmt::format("{}", **whole);
  if (auto* real = std::get_if<double*>(&setting.value)) return fmt::format("{}", **real);
  return base::quote(*std::get<std::string*>(setting.value));
}

}  // namespace

base::Result<Config> read_config(std::string_view text, std::string_view name, const std::vector<std::string>& arguments) {
  Config config;
  const std::vector<Setting> table = settings(config);
  TRY(read_yaml(text, name, table));
  TRY(read_arguments(arguments, table));
  TRY(check_together(config));
  return config;
}

base::Json to_json(const Config& config) {
  Config copy = config;
  base::Json json = base::Json::object();
  for (const Setting& setting : settings(copy)) std::visit([&](auto* value) { json[std::string(setting.key)] = *value; }, setting.value);
  return json;
}

std::string help_of_settings(base::Language language) {
  Config defaults;
  std::string text;
  for (const Setting& setting : settings(defaults))
    text += fmt::format("  {:<34}{:<14}{}\n", setting.key, text_of(setting), words::said_in(language, setting.help));
  return text;
}

}  // namespace phalanx::engine::train
