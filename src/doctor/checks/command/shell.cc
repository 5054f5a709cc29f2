// Lints of shell scripts that launch.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"

namespace phalanx::doctor {
namespace {

// The file is started by its own name, so that its first line counts.
bool started_directly(const Situation& s, const UserFile& file) {
  for (const UserLaunch& launch : user_launches(s)) {
    if (launch.line->launcher != "direct") continue;
    std::string name = launch.line->program.substr(launch.line->program.find_last_of('/') + 1);
    if (file.file->path.ends_with("/" + name)) return true;
  }
  return false;
}

void shebang(const Situation& s, Findings& findings) {
  for (std::string_view role : {"shell", "script"}) {
    for (const UserFile& file : user_files(s, role)) {
      std::string first(base::trim(file.file->text.substr(0, std::min<size_t>(file.file->text.find('\n'), 120))));
      const bool wrong = first.starts_with("#/") || first.starts_with("# !/") || first.starts_with("\xEF\xBB\xBF#!") ||
                         first.starts_with("!#/") || first.starts_with("!/");
      if (!wrong || !started_directly(s, file)) continue;
      std::string name = shown(s, file.file->path), interpreter = role == "shell" ? "/bin/bash" : "/usr/bin/env python3";
      tell(findings, s, file.hosts, tr("{} begins with {}", name, base::shell_quote(first)),
           fmt::format("sed -i '1s|.*|#!{}|' {}", interpreter, base::shell_quote(file.file->path)));
    }
  }
}

void crlf(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "shell")) {
    const auto lines = std::count(file.file->text.begin(), file.file->text.end(), '\n');
    int64_t ends = 0;
    for (size_t at = file.file->text.find("\r\n"); at != std::string::npos; at = file.file->text.find("\r\n", at + 2)) ++ends;
    if (ends == 0) continue;
    std::string name = shown(s, file.file->path);
    tell(findings, s, file.hosts, tr("{}: {} of {} lines end in CR LF", name, ends, lines),
         fmt::format("sed -i 's/\\r$//' {}", base::shell_quote(file.file->path)));
  }
}

void log_folder(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const machine::ShellOutput& o : s.hosts[h].facts.command.outputs) {
      if (o.folder_exists || o.folder_made) continue;
      std::string at = o.file.empty() ? "" : fmt::format("{}:{}: ", shown(s, o.file), o.line);
      findings.on(h, tr("{}output goes to {}, but the directory {} does not exist", at, shown(s, o.target), o.folder),
                  "mkdir -p " + base::shell_quote(o.folder));
    }
  }
}

void log_shared(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const machine::ShellOutput& o : s.hosts[h].facts.command.outputs) {
      if (!o.launch || o.file.empty() || s.hosts[h].ranks < 2) continue;
      findings.on(h, tr("{}:{}: all {} ranks write {}", shown(s, o.file), o.line, s.hosts[h].ranks, shown(s, o.target)));
    }
  }
}

void background(const Situation& s, Findings& findings) {
  for (const UserLaunch& launch : user_launches(s)) {
    const machine::LaunchLine& l = *launch.line;
    if (!l.background || l.file.empty() || l.launcher == "shell") continue;
    bool waits = false;
    for (const UserFile& file : user_files(s, "shell"))
      if (file.file->path == l.file)
        for (std::string_view line : base::split_lines(file.file->text)) waits = waits || base::trim(line).starts_with("wait");
    if (waits) continue;
    Words at = place(s, l);
    tell(findings, s, launch.hosts, tr("{} starts {} with '&', and the script never waits for it", at, l.program),
         "echo wait >> " + base::shell_quote(l.file));
  }
}

// Variables a launcher gives every rank, written as a number in front of the program or exported before.
void fixed_variable(const Situation& s, Findings& findings, const std::string& name, bool (*harms)(const Situation&, size_t, int64_t)) {
  for (const UserLaunch& launch : user_launches(s)) {
    const machine::LaunchLine& l = *launch.line;
    auto found = l.variables.find(name);
    if (found == l.variables.end() || !whole_number(found->second) || l.launcher == "shell" || l.launcher == "direct") continue;
    std::vector<size_t> hosts;
    for (size_t h : launch.hosts)
      if (harms(s, h, std::stoll(found->second))) hosts.push_back(h);
    if (hosts.empty()) continue;
    Words at = place(s, l);
    const HostView& first = s.hosts[hosts.front()];
    tell(findings, s, hosts, tr("{} sets {}={}; {} ranks in all, {} on {}", at, name, found->second, s.job.world, first.ranks, first.name),
         l.file.empty() ? "" : fmt::format("sed -i 's/\\b{}={} *//' {}", name, found->second, base::shell_quote(l.file)));
  }
}

void local_rank(const Situation& s, Findings& findings) {
  fixed_variable(s, findings, "LOCAL_RANK", [](const Situation& all, size_t h, int64_t) { return all.hosts[h].ranks > 1; });
}
void rank_fixed(const Situation& s, Findings& findings) {
  fixed_variable(s, findings, "RANK", [](const Situation& all, size_t, int64_t) { return all.job.world > 1; });
}
void world_size(const Situation& s, Findings& findings) {
  fixed_variable(s, findings, "WORLD_SIZE",
                 [](const Situation& all, size_t, int64_t n) { return all.job.world > 0 && n != all.job.world; });
}

void master_fixed(const Situation& s, Findings& findings) {
  if (s.single() || s.hosts.empty() || s.hosts[0].facts.network.interfaces.empty()) return;
  std::vector<std::string> first = {s.hosts[0].name, s.hosts[0].address, s.hosts[0].facts.machine.hostname};
  for (const machine::Interface& i : s.hosts[0].facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses)
      if (!i.loopback) first.push_back(a.address);
  for (const UserLaunch& launch : user_launches(s)) {
    auto found = launch.line->variables.find("MASTER_ADDR");
    if (found == launch.line->variables.end() || found->second.empty() || found->second.find('$') != std::string::npos) continue;
    if (launch.line->launcher == "shell" || launch.line->launcher == "direct") continue;
    if (std::find(first.begin(), first.end(), found->second) != first.end()) continue;
    Words at = place(s, *launch.line);
    tell(findings, s, launch.hosts,
         tr("{} sets MASTER_ADDR={}; rank 0 runs on {} ({})", at, found->second, s.hosts[0].name, s.hosts[0].address));
  }
}

constexpr Row kShellRows[] = {
    {"CMD-SHEBANG", Severity::kWarning, shebang},           {"CMD-CRLF", Severity::kWarning, crlf},
    {"CMD-LOG-FOLDER", Severity::kWarning, log_folder},     {"CMD-LOG-SHARED", Severity::kNote, log_shared},
    {"CMD-BACKGROUND", Severity::kWarning, background},     {"CMD-LOCAL-RANK-FIXED", Severity::kWarning, local_rank},
    {"CMD-RANK-FIXED", Severity::kWarning, rank_fixed},     {"CMD-WORLD-SIZE-FIXED", Severity::kWarning, world_size},
    {"CMD-MASTER-FIXED", Severity::kWarning, master_fixed},
};

}  // namespace

std::span<const Row> shell_rows() { return kShellRows; }

}  // namespace phalanx::doctor
