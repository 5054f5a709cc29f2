// config show: every option that run would use here, with its origin.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/run_options.h"
#include "cli/flags/verbs.h"
#include "cli/records/runs.h"
#include "logs/runs/run_directory.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::Json;
using words::Text;

enum class Origin { kDefault, kVariable, kFile, kOption };

struct Setting {
  std::string name;                  // "iface", "env.NCCL_DEBUG"
  std::optional<std::string> value;  // none: a variable's, which is not shown, or an option that is not set
  Origin origin = Origin::kDefault;
  std::string from;  // kVariable: its name; kOption: as typed
  int line = 0;      // kFile
  const FlagRow* flag = nullptr;
};

// "10s" of "(default: 10s)" at the end of the English help; empty: the help names none.
std::string default_of(const FlagRow& flag) {
  constexpr std::string_view kOpen = "(default: ";
  const std::string_view help = flag.help.english;
  const size_t at = help.rfind(kOpen);
  if (at == std::string_view::npos || !help.ends_with(')')) {
    if (flag.kind == ValueKind::kNone) return "false";
    return flag.choices.starts_with("auto|") ? "auto" : "";
  }
  return std::string(help.substr(at + kOpen.size(), help.size() - at - kOpen.size() - 1));
}

Setting of_default(const FlagRow& flag) {
  Setting out{std::string(flag.name), std::nullopt, Origin::kDefault, "", 0, &flag};
  if (flag.flag == Flag::kLogDir) {
    if (base::Result<std::string> folder = logs::RunDirectory::base_folder(""); folder.ok()) out.value = *folder;
    if (!os::environment_value("XDG_STATE_HOME").empty()) out.origin = Origin::kVariable, out.from = "XDG_STATE_HOME";
  }
  if (flag.flag == Flag::kColor && !os::environment_value("NO_COLOR").empty())
    out = {std::string(flag.name), "never", Origin::kVariable, "NO_COLOR", 0, &flag};
  return out;
}

std::vector<Setting> settings_of(const Invocation& invocation) {
  std::vector<Setting> all;
  for (const FlagRow& flag : flag_table()) {
    if (!is_project_key(flag)) continue;
    bool set = false;
    for (const GivenFlag& given : invocation.flags) {
      if (given.row != &flag) continue;
      set = true;
      Setting one{std::string(flag.name), given.value, given.line ? Origin::kFile : Origin::kOption, given.typed, given.line, &flag};
      if (flag.kind == ValueKind::kNone) one.value = "true";
      if (flag.flag == Flag::kEnv) {
        one.name += "." + given.value.substr(0, given.value.find('='));
        one.value.reset();
      }
      all.push_back(std::move(one));
    }
    const bool off = std::find(invocation.off.begin(), invocation.off.end(), &flag) != invocation.off.end();
    if (off) all.push_back({std::string(flag.name), "false", Origin::kOption, fmt::format("--{}=false", flag.name), 0, &flag});
    if (!set && !off) all.push_back(of_default(flag));
  }
  return all;
}

Json json_of(const Setting& setting) {
  constexpr std::string_view kNames[] = {"default", "variable", "file", "option"};
  Json json = {{"name", setting.name}, {"value", nullptr}, {"origin", kNames[static_cast<size_t>(setting.origin)]}};
  if (setting.value) json["value"] = *setting.value;
  if (setting.origin == Origin::kFile) json["line"] = setting.line;
  if (setting.origin == Origin::kVariable) json["variable"] = setting.from;
  if (std::string text = default_of(*setting.flag); setting.origin == Origin::kDefault && !text.empty()) json["default"] = text;
  return json;
}

std::string shown_value(const Setting& setting, base::Language language) {
  if (setting.value) return base::printable(*setting.value, 400);
  if (setting.origin != Origin::kDefault) return std::string(Text{"(not shown)"}.in(language));
  std::string text = default_of(*setting.flag);
  return text.empty() ? "-" : text;
}

std::string origin_text(const Setting& setting, const std::string& file, base::Language language) {
  switch (setting.origin) {
    case Origin::kDefault: return std::string(Text{"default##origin"}.in(language));
    case Origin::kVariable: return setting.from;
    case Origin::kFile: return fmt::format("{}:{}", file, setting.line);
    case Origin::kOption: return base::printable(setting.from.substr(0, setting.from.find(' ')));
  }
  return "";
}

std::string table(const std::vector<Setting>& settings, const std::string& file, bool origins, base::Language language) {
  size_t names = 0, values = 0;
  constexpr size_t kWidestValue = 60;
  for (const Setting& one : settings) {
    names = std::max(names, base::display_width(one.name));
    values = std::max(values, std::min(kWidestValue, base::display_width(shown_value(one, language))));
  }
  std::string out;
  for (const Setting& one : settings) {
    const std::string value = shown_value(one, language);
    out += base::pad_right(one.name, names + 2) + (origins ? base::pad_right(value, values) + "  " : value);
    if (origins) out += origin_text(one, file, language);
    out += "\n";
  }
  return base::printable_lines(out);
}

}  // namespace

base::Result<int> config_verb(const Invocation& invocation) {
  if (invocation.operands.size() != 1 || invocation.operands[0] != "show")
    return base::fail(base::ErrorKind::kUsage, invocation.operands.empty()
                                                   ? std::string("config needs to know what to do")
                                                   : fmt::format("config cannot {}", base::quote(base::join(invocation.operands, " "))))
        .with_hint("phalanx config show --origin");
  TRY(run_options(invocation));
  std::vector<Setting> settings = settings_of(invocation);
  const base::Language language = language_here();
  if (invocation.has(Flag::kJson)) {
    Json json = {{"schema", 1}, {"file", nullptr}, {"options", Json::array()}};
    if (!invocation.project.empty()) json["file"] = invocation.project;
    for (const Setting& one : settings) json["options"].push_back(json_of(one));
    std::fputs((base::to_text(json, 2) + "\n").c_str(), stdout);
    return 0;
  }
  const bool origins = invocation.has(Flag::kOrigin);
  if (!origins) std::erase_if(settings, [](const Setting& one) { return one.origin == Origin::kDefault; });
  if (invocation.project.empty()) std::fputs(words::tr(language, "phalanx: no project file sets anything here\n").c_str(), stderr);
  std::fputs(table(settings, invocation.project, origins, language).c_str(), stdout);
  return 0;
}

}  // namespace phalanx::cli
