// Lints of launch lines: launchers inside launchers, and what LLaMA-Factory's own launcher needs.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"

namespace phalanx::doctor {
namespace {

// LLaMA-Factory's is_env_enabled (extras/misc.py).
bool enabled(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string lower = base::to_lower(*value);
  return lower == "true" || lower == "y" || lower == "1";
}

int most_ranks(const Situation& s, const std::vector<size_t>& hosts) {
  int most = 0;
  for (size_t h : hosts) most = std::max(most, s.hosts[h].ranks);
  return most;
}

// What to run instead of a launcher: the program it would have started.
std::string without_launcher(const Situation& s, const machine::LaunchLine& l) {
  std::string program = l.launcher == "llamafactory" ? "python -m llamafactory.launcher " : l.module ? "python -m " : "python ";
  if (l.program.find('$') != std::string::npos) program += l.program;
  else program += base::shell_quote(l.program);
  for (const std::string& word : l.arguments) program += " " + (word.find('$') == std::string::npos ? base::shell_quote(word) : word);
  return fmt::format("phalanx run -H {} -- {}", host_list(s), program);
}

bool starts_ranks(const Situation& s, const UserLaunch& launch, size_t h) {
  if (is_launcher(*launch.line)) return true;
  if (launch.line->launcher != "llamafactory") return false;
  return s.hosts[h].facts.gpus.devices.size() > 1 || enabled(variable(s, *launch.line, h, "FORCE_TORCHRUN"));
}

void nested(const Situation& s, Findings& findings) {
  for (const UserLaunch& launch : user_launches(s)) {
    std::vector<size_t> hosts;
    for (size_t h : launch.hosts)
      if (s.hosts[h].ranks > 1 && starts_ranks(s, launch, h)) hosts.push_back(h);
    if (hosts.empty()) continue;
    Words at = place(s, *launch.line);
    const int ranks = most_ranks(s, hosts);
    const std::string name = launch.line->launcher == "llamafactory" ? "llamafactory-cli" : launch.line->launcher;
    tell(findings, s, hosts, tr("{} starts {}; each of the {} ranks of a host would start another", at, name, ranks),
         without_launcher(s, *launch.line));
  }
}

void spawn(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const CodeLine* line = line_with(lines, "mp.spawn(");
    if (!line) line = line_with(lines, "multiprocessing.spawn(");
    const int ranks = most_ranks(s, file.hosts);
    // A script that reads the launcher's variables spawns only where there is none.
    const bool knows_launchers =
        line_with(lines, "LOCAL_RANK") || line_with(lines, "environ[\"RANK\"]") || line_with(lines, "environ['RANK']");
    if (!line || knows_launchers || ranks < 2) continue;
    std::string at = fmt::format("{}:{}", shown(s, file.file->path), line->number);
    tell(findings, s, file.hosts, tr("{}: {}; each of the {} ranks of a host would start the same number", at, line->text, ranks),
         fmt::format("phalanx run -H {} --nproc-per-node 1 -- python {}", host_list(s), shown(s, file.file->path)));
  }
}

// Hosts of a LLaMA-Factory launch that NNODES makes one of several, for which `wrong` holds.
template <typename Wrong>
void llamafactory_nodes(const Situation& s, Findings& findings, Wrong wrong, const Words& what, const std::string& fix) {
  for (const UserLaunch& launch : user_launches(s)) {
    if (launch.line->launcher != "llamafactory") continue;
    std::vector<size_t> hosts;
    std::string nodes;
    for (size_t h : launch.hosts) {
      std::string n = variable(s, *launch.line, h, "NNODES").value_or("1");
      if (!whole_number(n) || std::stoi(n) < 2 || !wrong(*launch.line, h)) continue;
      hosts.push_back(h);
      nodes = n;
    }
    if (hosts.empty()) continue;
    Words at = place(s, *launch.line);
    tell(findings, s, hosts, tr("{}: llamafactory-cli with NNODES={}, {}", at, nodes, what),
         fix.empty() ? without_launcher(s, *launch.line) : fix);
  }
}

void force_torchrun(const Situation& s, Findings& findings) {
  llamafactory_nodes(
      s, findings,
      [&](const machine::LaunchLine& l, size_t h) {
        return s.hosts[h].facts.gpus.devices.size() == 1 && !enabled(variable(s, l, h, "FORCE_TORCHRUN"));
      },
      tr("one GPU, and no FORCE_TORCHRUN=1"), "export FORCE_TORCHRUN=1");
}

void nproc_unset(const Situation& s, Findings& findings) {
  auto count = [&](size_t h) {
    auto visible = s.variable(h, "CUDA_VISIBLE_DEVICES");
    if (!visible) return s.hosts[h].facts.gpus.devices.size();
    size_t n = 0;
    for (std::string_view part : base::split(*visible, ',')) n += base::trim(part).empty() ? 0 : 1;
    return n;
  };
  size_t least = SIZE_MAX, most = 0;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].probed || s.hosts[h].facts.gpus.devices.empty()) continue;
    least = std::min(least, count(h));
    most = std::max(most, count(h));
  }
  if (most == 0 || least == most) return;
  llamafactory_nodes(
      s, findings, [&](const machine::LaunchLine& l, size_t h) { return !variable(s, l, h, "NPROC_PER_NODE"); },
      tr("no NPROC_PER_NODE, and the hosts see {} to {} GPUs", least, most), fmt::format("export NPROC_PER_NODE={}", least));
}

void llamafactory_meeting(const Situation& s, Findings& findings) {
  llamafactory_nodes(
      s, findings,
      [&](const machine::LaunchLine& l, size_t h) { return !variable(s, l, h, "MASTER_PORT") || !variable(s, l, h, "MASTER_ADDR"); },
      tr("without MASTER_ADDR and MASTER_PORT"), "");
}

// --node_rank 0, --machine_rank 0, NODE_RANK=0: one number in words that start on every host.
void node_rank(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const UserLaunch& launch : user_launches(s)) {
    if ((!is_launcher(*launch.line) && launch.line->launcher != "llamafactory") || launch.hosts.size() < 2) continue;
    std::string given;
    for (const char* name : {"node_rank", "machine_rank"}) {
      auto found = launch.line->options.find(name);
      if (found != launch.line->options.end() && whole_number(found->second)) given = fmt::format("--{} {}", name, found->second);
    }
    auto set = launch.line->variables.find("NODE_RANK");
    if (set != launch.line->variables.end() && whole_number(set->second)) given = "NODE_RANK=" + set->second;
    if (given.empty()) continue;
    Words at = place(s, *launch.line);
    tell(findings, s, launch.hosts, tr("{} says {} on {} hosts", at, given, launch.hosts.size()), without_launcher(s, *launch.line));
  }
}

void old_launch(const Situation& s, Findings& findings) {
  for (const UserLaunch& launch : user_launches(s)) {
    if (launch.line->launcher != "torch.distributed.launch" || launch.line->options.count("use_env")) continue;
    for (const UserFile& file : user_files(s, "script")) {
      const std::string& text = file.file->text;
      auto torch = s.hosts[file.hosts.front()].facts.software.packages.find("torch");
      if (torch == s.hosts[file.hosts.front()].facts.software.packages.end() || torch->second.starts_with("1.")) continue;
      if (text.find("--local_rank") == std::string::npos || text.find("--local-rank") != std::string::npos) continue;
      tell(findings, s, file.hosts,
           tr("{} accepts only --local_rank; torch {} passes --local-rank", shown(s, file.file->path), torch->second),
           without_launcher(s, *launch.line));
    }
  }
}

constexpr Row kLaunchRows[] = {
    {"CMD-NESTED-LAUNCHER", Severity::kWarning, nested},
    {"CMD-SPAWN", Severity::kWarning, spawn},
    {"CMD-FORCE-TORCHRUN", Severity::kWarning, force_torchrun},
    {"CMD-NPROC-UNSET", Severity::kWarning, nproc_unset},
    {"CMD-LLAMAFACTORY-RENDEZVOUS", Severity::kWarning, llamafactory_meeting},
    {"CMD-NODE-RANK-FIXED", Severity::kWarning, node_rank},
    {"CMD-TORCH-LAUNCH", Severity::kWarning, old_launch},
};

}  // namespace

std::span<const Row> launch_rows() { return kLaunchRows; }

}  // namespace phalanx::doctor
