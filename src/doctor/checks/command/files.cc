// The files of the command: there, well formed, and the same on all hosts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/text.h"
#include "base/yaml.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/command_view.h"
#include "doctor/views/path_view.h"

namespace phalanx::doctor {
namespace {

constexpr std::string_view kConfigRoles[] = {"deepspeed", "accelerate", "llamafactory", "lightning", "dataset_info", "config"};

struct Missing {
  std::string path, role, named_by, error;
  std::vector<size_t> hosts;
  std::optional<size_t> there;  // a host that has it
};

std::vector<Missing> missing_files(const Situation& s) {
  std::map<std::string, Missing> all;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const machine::CommandFile& file : s.hosts[h].facts.command.files) {
      Missing& m = all[file.path];
      if (file.exists) {
        m.there = h;
        continue;
      }
      m.path = file.path;
      m.role = file.role;
      m.named_by = file.named_by;
      m.hosts.push_back(h);
    }
  }
  std::vector<Missing> result;
  for (auto& [path, m] : all)
    if (!m.hosts.empty()) result.push_back(std::move(m));
  return result;
}

std::string copy_command(const Situation& s, const Missing& m) {
  const bool below = !s.job.directory.empty() && m.path.starts_with(s.job.directory + "/");
  if (!m.there) return below ? fmt::format("{}    # if {} is here", run_with_sync(s), base::shell_quote(shown(s, m.path))) : "";
  const std::string& to = s.hosts[m.hosts.front()].name;
  return fmt::format("ssh {} scp -p {} {}:{}{}", s.hosts[*m.there].name, base::shell_quote(m.path), to, base::shell_quote(m.path),
                     below ? "    # or: run --sync" : "");
}

// The script of the command's own words, without which no rank can start.
bool is_the_script(const Missing& m) { return m.named_by == "the command" && (m.role == "script" || m.role == "shell"); }

void script_missing(const Situation& s, Findings& findings) {
  for (const Missing& m : missing_files(s))
    if (is_the_script(m)) findings.on(m.hosts, tr("{} does not exist", m.path), copy_command(s, m));
}

void file_missing(const Situation& s, Findings& findings) {
  for (const Missing& m : missing_files(s))
    if (!is_the_script(m)) findings.on(m.hosts, tr("{} does not exist ({})", m.path, m.named_by), copy_command(s, m));
}

void file_differs(const Situation& s, Findings& findings) {
  std::set<std::string> paths;
  for (const HostView& h : s.hosts)
    for (const machine::CommandFile& file : h.facts.command.files)
      if (file.exists) paths.insert(file.path);
  for (const std::string& path : paths) {
    std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
      for (const machine::CommandFile& file : h.facts.command.files)
        if (file.path == path && !file.sha256.empty()) return base::counted("{} ({} bytes)", file.sha256.substr(0, 8), file.size);
      return std::nullopt;
    });
    if (all.size() < 2) continue;
    const bool tie = all[0].hosts.size() == all[1].hosts.size();
    const std::string& good = s.hosts[all[0].hosts.front()].name;
    for (size_t c = 1; c < all.size(); ++c) {
      std::vector<size_t> hosts = all[c].hosts;
      if (tie && c == 1) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
      findings.on(hosts, tr("{}: {}; {}: {}", shown(s, path), all[c].value, tie ? tr("{}", good) : tr("the others"), all[0].value),
                  fmt::format("ssh {} scp -p {} {}:{}", good, base::shell_quote(path), s.hosts[all[c].hosts.front()].name,
                              base::shell_quote(path)));
    }
  }
}

void git_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    const std::string& head = h.facts.command.git_head;
    return head.empty() ? std::nullopt : std::optional(head.substr(0, 12));
  });
  if (all.size() < 2) return;
  const bool tie = all[0].hosts.size() == all[1].hosts.size();
  for (size_t c = 1; c < all.size(); ++c) {
    std::vector<size_t> hosts = all[c].hosts;
    if (tie && c == 1) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
    findings.on(hosts,
                tr("the code is at commit {}; {} at {}", all[c].value, tie ? tr("{}", s.hosts[all[0].hosts[0]].name) : tr("the others"),
                   all[0].value),
                fmt::format("ssh {} git -C {} checkout {}", s.hosts[all[c].hosts[0]].name,
                            base::shell_quote(s.job.directory.empty() ? "." : s.job.directory), all[0].value));
  }
}

void config_syntax(const Situation& s, Findings& findings) {
  for (std::string_view role : kConfigRoles) {
    for (const UserFile& file : user_files(s, role)) {
      std::string error;
      if (file.file->path.ends_with(".json")) {
        if (auto json = base::parse_json(file.file->text); !json.ok()) error = json.error().message;
      } else if (auto yaml = base::parse_yaml(file.file->text); !yaml.ok()) {
        error = yaml.error().message;
      }
      if (error.empty()) continue;
      std::string name = shown(s, file.file->path), quoted = base::shell_quote(file.file->path);
      tell(findings, s, file.hosts, tr("{}: {}", name, error),
           file.file->path.ends_with(".json") ? "python3 -m json.tool " + quoted
                                              : fmt::format("python3 -c 'import yaml,sys; yaml.safe_load(open(sys.argv[1]))' {}", quoted));
    }
  }
}

void config_twice(const Situation& s, Findings& findings) {
  for (std::string_view role : kConfigRoles) {
    for (const UserFile& file : user_files(s, role)) {
      if (file.file->path.ends_with(".json")) continue;
      auto yaml = base::parse_yaml(file.file->text);
      if (!yaml.ok() || yaml->twice.empty()) continue;
      const std::string& key = yaml->twice.front();
      std::string name = shown(s, file.file->path);
      const base::Json* value = value_at(yaml->value, key);
      std::string last = value ? base::to_text(*value) : "?";
      tell(findings, s, file.hosts, tr("{}: {} is given twice; the value {} in line {} applies", name, key, last, yaml->lines[key]));
    }
  }
}

constexpr Row kCommandFileRows[] = {
    {"CMD-SCRIPT-MISSING", Severity::kError, script_missing}, {"CMD-FILE-MISSING", Severity::kWarning, file_missing},
    {"CMD-FILE-DIFFERS", Severity::kWarning, file_differs},   {"CMD-GIT-DIFFERS", Severity::kWarning, git_differs},
    {"CMD-CONFIG-SYNTAX", Severity::kWarning, config_syntax}, {"CMD-CONFIG-DUPLICATE", Severity::kWarning, config_twice},
};

}  // namespace

std::span<const Row> command_file_rows() { return kCommandFileRows; }

}  // namespace phalanx::doctor
