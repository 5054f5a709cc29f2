#include "doctor/views/command_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "base/yaml.h"

namespace phalanx::doctor {

std::vector<UserFile> user_files(const Situation& situation, std::string_view role) {
  std::vector<UserFile> all;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    for (const machine::CommandFile& file : situation.hosts[h].facts.command.files) {
      if (file.role != role || !file.exists || file.text.empty()) continue;
      auto same = std::find_if(all.begin(), all.end(),
                               [&](const UserFile& u) { return u.file->path == file.path && u.file->sha256 == file.sha256; });
      if (same == all.end()) same = all.insert(all.end(), UserFile{&file, {}});
      same->hosts.push_back(h);
    }
  }
  return all;
}

std::string UserConfig::place(const Situation& situation, const std::string& key) const {
  auto line = lines.find(key);
  std::string name = shown(situation, file.file->path);
  return line == lines.end() ? name : fmt::format("{}:{}", name, line->second);
}

std::vector<UserConfig> user_configs(const Situation& situation, std::string_view role) {
  std::vector<UserConfig> all;
  for (UserFile& file : user_files(situation, role)) {
    UserConfig config{std::move(file), {}, {}};
    if (config.file.file->path.ends_with(".json")) {
      auto json = base::parse_json(config.file.file->text);
      if (!json.ok() || !json->is_object()) continue;
      config.value = std::move(json).value();
    } else {
      auto yaml = base::parse_yaml(config.file.file->text);
      if (!yaml.ok() || !yaml->value.is_object()) continue;
      config.value = std::move(yaml->value);
      config.lines = std::move(yaml->lines);
    }
    all.push_back(std::move(config));
  }
  return all;
}

const base::Json* value_at(const base::Json& object, std::string_view path) {
  const base::Json* at = &object;
  for (std::string_view part : base::split(path, '.')) {
    if (!at->is_object()) return nullptr;
    auto found = at->find(std::string(part));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::optional<int64_t> int_at(const base::Json& object, std::string_view path) {
  const base::Json* value = value_at(object, path);
  if (!value || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

std::vector<UserLaunch> user_launches(const Situation& situation) {
  std::vector<UserLaunch> all;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    for (const machine::LaunchLine& line : situation.hosts[h].facts.command.launches) {
      auto same = std::find_if(all.begin(), all.end(), [&](const UserLaunch& u) {
        const machine::LaunchLine& l = *u.line;
        return l.file == line.file && l.line == line.line && l.launcher == line.launcher && l.options == line.options &&
               l.variables == line.variables && l.program == line.program && l.arguments == line.arguments;
      });
      if (same == all.end()) same = all.insert(all.end(), UserLaunch{&line, {}});
      same->hosts.push_back(h);
    }
  }
  return all;
}

bool is_launcher(const machine::LaunchLine& line) {
  return line.launcher == "torchrun" || line.launcher == "torch.distributed.launch" || line.launcher == "accelerate" ||
         line.launcher == "deepspeed" || line.launcher == "lightning";
}

std::optional<std::string> variable(const Situation& situation, const machine::LaunchLine& line, size_t host, const std::string& name) {
  auto found = line.variables.find(name);
  return found != line.variables.end() ? std::optional(found->second) : situation.variable(host, name);
}

Words place(const Situation& situation, const machine::LaunchLine& line) {
  if (line.file.empty()) return tr("the command");
  std::string text = fmt::format("{}:{}", shown(situation, line.file), line.line);
  return {text, text};
}

std::string shown(const Situation& situation, const std::string& path) {
  const std::string& folder = situation.job.directory;
  if (!folder.empty() && path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/')
    return path.substr(folder.size() + 1);
  return path;
}

void tell(Findings& findings, const Situation& situation, const std::vector<size_t>& hosts, Words evidence, std::string fix) {
  size_t probed = 0;
  for (const HostView& h : situation.hosts) probed += h.probed ? 1 : 0;
  if (hosts.size() >= probed) findings.job(std::move(evidence), std::move(fix));
  else findings.on(hosts, std::move(evidence), std::move(fix));
}

std::string host_list(const Situation& situation) {
  std::vector<std::string> names;
  for (const HostView& h : situation.hosts) names.push_back(h.name);
  return base::join(names, ",");
}

namespace {

// Where a comment begins outside quotes.
size_t comment_start(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == '\\') ++i;
      else if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return i;
    }
  }
  return line.size();
}

}  // namespace

std::vector<CodeLine> code_lines(const std::string& python) {
  std::vector<CodeLine> all;
  std::string_view triple;
  int number = 0;
  for (std::string_view line : base::split_lines(python)) {
    ++number;
    if (!triple.empty()) {
      if (line.find(triple) != std::string_view::npos) triple = {};
      continue;
    }
    std::string_view code = line.substr(0, comment_start(line));
    for (std::string_view mark : {"\"\"\"", "'''"}) {
      size_t open = line.find(mark);
      if (open == std::string_view::npos || open > code.size()) continue;
      if (line.find(mark, open + 3) == std::string_view::npos) triple = mark;
      code = line.substr(0, open);
    }
    std::string_view text = base::trim(code);
    if (text.empty()) continue;
    int indent = 0;
    for (char c : line) {
      if (c == ' ') ++indent;
      else if (c == '\t') indent += 8;
      else break;
    }
    all.push_back({number, indent, std::string(text)});
  }
  return all;
}

const CodeLine* line_with(const std::vector<CodeLine>& lines, std::string_view word) {
  for (const CodeLine& line : lines) {
    for (size_t at = line.text.find(word); at != std::string::npos; at = line.text.find(word, at + 1)) {
      unsigned char before = at == 0 ? ' ' : static_cast<unsigned char>(line.text[at - 1]);
      if (!std::isalnum(before) && before != '_') return &line;
    }
  }
  return nullptr;
}

bool whole_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace phalanx::doctor
