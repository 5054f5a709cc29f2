// Lints of launch lines: launchers inside launchers, and what LLaMA-Factory's own launcher needs.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/rows_command.h"

namespace doctor {
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
std::string without_launcher(const Situation& s, const host::LaunchLine& l) {
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
    tell(findings, s, hosts,
         {fmt::format("{} starts {}; each of the {} ranks of a host would start one of its own", at.english, name, ranks),
          fmt::format("{} 启动 {}；每台机器的 {} 个 rank 会各自再启动一个", at.chinese, name, ranks)},
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
    tell(findings, s, file.hosts,
         {fmt::format("{}: {}; each of the {} ranks of a host would start as many again", at, line->text, ranks),
          fmt::format("{}：{}；每台机器的 {} 个 rank 会各自再启动同样多的进程", at, line->text, ranks)},
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
    tell(findings, s, hosts,
         {fmt::format("{}: llamafactory-cli with NNODES={}, {}", at.english, nodes, what.english),
          fmt::format("{}：llamafactory-cli，NNODES={}，{}", at.chinese, nodes, what.chinese)},
         fix.empty() ? without_launcher(s, *launch.line) : fix);
  }
}

void force_torchrun(const Situation& s, Findings& findings) {
  llamafactory_nodes(
      s, findings,
      [&](const host::LaunchLine& l, size_t h) {
        return s.hosts[h].facts.gpus.devices.size() == 1 && !enabled(variable(s, l, h, "FORCE_TORCHRUN"));
      },
      {"one GPU, and no FORCE_TORCHRUN=1", "只有一块 GPU，且没有 FORCE_TORCHRUN=1"}, "export FORCE_TORCHRUN=1");
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
      s, findings, [&](const host::LaunchLine& l, size_t h) { return !variable(s, l, h, "NPROC_PER_NODE"); },
      {fmt::format("no NPROC_PER_NODE, and the hosts see {} to {} GPUs", least, most),
       fmt::format("没有 NPROC_PER_NODE，而各机器可见的 GPU 数从 {} 到 {} 不等", least, most)},
      fmt::format("export NPROC_PER_NODE={}", least));
}

void llamafactory_meeting(const Situation& s, Findings& findings) {
  llamafactory_nodes(
      s, findings,
      [&](const host::LaunchLine& l, size_t h) { return !variable(s, l, h, "MASTER_PORT") || !variable(s, l, h, "MASTER_ADDR"); },
      {"without MASTER_ADDR and MASTER_PORT", "缺少 MASTER_ADDR 或 MASTER_PORT"}, "");
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
    tell(findings, s, launch.hosts,
         {fmt::format("{} says {} on {} hosts", at.english, given, launch.hosts.size()),
          fmt::format("{} 在 {} 台机器上都是 {}", at.chinese, launch.hosts.size(), given)},
         without_launcher(s, *launch.line));
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
           {fmt::format("{} knows --local_rank only; torch {} passes --local-rank", shown(s, file.file->path), torch->second),
            fmt::format("{} 只认 --local_rank；torch {} 传的是 --local-rank", shown(s, file.file->path), torch->second)},
           without_launcher(s, *launch.line));
    }
  }
}

constexpr Row kLaunchRows[] = {
    {"CMD-NESTED-LAUNCHER",
     Severity::kWarning,
     Group::kCommand,
     {"a launcher would be started by every rank", "每个 rank 都会再启动一个启动器"},
     {"Does the command start torchrun, accelerate, deepspeed or llamafactory-cli where several ranks of a host run it?",
      "一台机器要起多个 rank 时，命令里是否还套着 torchrun、accelerate、deepspeed 或 llamafactory-cli？"},
     {"phalanx run starts the command once per rank, as torchrun does. A launcher in it starts ranks of its own in each of them: "
      "\"Address already in use\" on the second, or so many separate jobs on the same GPUs.",
      "phalanx run 与 torchrun 一样，每个 rank 执行一次命令。命令里再套一个启动器，每个 rank 又会各起一组进程："
      "第二个起报 \"Address already in use\"，或者在同样的 GPU 上跑出好几份互不相干的训练。"},
     {"Give phalanx the program itself, or one rank per host to the launcher. For LLaMA-Factory the program is its launcher module.\n$ "
      "phalanx run -H <hosts> -- python <script>\n$ phalanx run -H <hosts> -- python -m llamafactory.launcher <config>",
      "直接把训练程序交给 phalanx，或者每台机器只起一个 rank 给启动器用。LLaMA-Factory 的训练程序是它的 launcher 模块。\n$ phalanx run -H "
      "<hosts> -- python <script>\n$ phalanx run -H <hosts> -- python -m llamafactory.launcher <config>"},
     "torch/distributed/run.py; LLaMA-Factory src/llamafactory/launcher.py",
     nested},
    {"CMD-SPAWN",
     Severity::kWarning,
     Group::kCommand,
     {"the script spawns processes of its own in every rank", "脚本会在每个 rank 里再自行派生进程"},
     {"Does a script that several ranks run call torch.multiprocessing.spawn?",
      "由多个 rank 执行的脚本是否还调用 torch.multiprocessing.spawn？"},
     {"mp.spawn is a launcher inside the script: started by several ranks it makes ranks of ranks. It also starts slowly and pickles its "
      "arguments: more than 4 GiB of them end in \"OverflowError: cannot serialize a bytes object larger than 4 GiB\".",
      "mp.spawn 相当于写在脚本里的启动器：由多个 rank 启动就会层层派生。它启动慢，还要序列化参数：超过 4 GiB 会报 "
      "\"OverflowError: cannot serialize a bytes object larger than 4 GiB\"。"},
     {"Start the script once per host, or take mp.spawn out and read RANK, LOCAL_RANK and WORLD_SIZE.\n$ phalanx run -H <host> "
      "--nproc-per-node 1 -- python <script>",
      "每台机器只启动一次脚本，或者去掉 mp.spawn，改读 RANK、LOCAL_RANK、WORLD_SIZE。\n$ phalanx run -H <host> --nproc-per-node 1 -- "
      "python <script>"},
     "torch/multiprocessing/spawn.py",
     spawn},
    {"CMD-FORCE-TORCHRUN",
     Severity::kWarning,
     Group::kCommand,
     {"LLaMA-Factory would train on each host alone", "LLaMA-Factory 会在每台机器上各训各的"},
     {"Is FORCE_TORCHRUN=1 set where NNODES > 1 and a host has one GPU?",
      "NNODES > 1 而机器只有一块 GPU 时，是否设置了 FORCE_TORCHRUN=1？"},
     {"llamafactory-cli starts torchrun only with more than one GPU or with FORCE_TORCHRUN=1. Otherwise NNODES is not read: every host "
      "trains the whole data by itself, without an error.",
      "llamafactory-cli 只有在 GPU 多于一块或 FORCE_TORCHRUN=1 时才会启动 torchrun，否则根本不看 "
      "NNODES：每台机器各自训练全部数据，而且不报错。"},
     {"Set it, or let phalanx start the ranks.\n$ export FORCE_TORCHRUN=1",
      "设置该变量，或改由 phalanx 启动各 rank。\n$ export FORCE_TORCHRUN=1"},
     "LLaMA-Factory src/llamafactory/launcher.py",
     force_torchrun},
    {"CMD-NPROC-UNSET",
     Severity::kWarning,
     Group::kCommand,
     {"LLaMA-Factory would start a different number of ranks on each host", "LLaMA-Factory 在各机器上启动的 rank 数会不一致"},
     {"Is NPROC_PER_NODE set where the hosts see different numbers of GPUs?", "各机器可见的 GPU 数不同时，是否设置了 NPROC_PER_NODE？"},
     {"Without NPROC_PER_NODE it is the number of visible GPUs. Set CUDA_VISIBLE_DEVICES on one host only and the hosts disagree about the "
      "world: the job hangs after the model is loaded, without any error.",
      "没有 NPROC_PER_NODE 时取可见 GPU 数。只在一台机器上设了 "
      "CUDA_VISIBLE_DEVICES，各机器对总进程数的认识就不同：模型加载完后卡住，没有任何报错。"},
     {"Set the same NPROC_PER_NODE and CUDA_VISIBLE_DEVICES on all hosts.\n$ export NPROC_PER_NODE=<gpus>",
      "在所有机器上设置相同的 NPROC_PER_NODE 与 CUDA_VISIBLE_DEVICES。\n$ export NPROC_PER_NODE=<gpus>"},
     "hiyouga/LlamaFactory#7215",
     nproc_unset},
    {"CMD-LLAMAFACTORY-RENDEZVOUS",
     Severity::kWarning,
     Group::kCommand,
     {"LLaMA-Factory's ranks would not meet", "LLaMA-Factory 的各个 rank 碰不到一起"},
     {"Are MASTER_ADDR and MASTER_PORT set where NNODES > 1?", "NNODES > 1 时是否设置了 MASTER_ADDR 与 MASTER_PORT？"},
     {"Its defaults are 127.0.0.1 and a free port that each host finds for itself: every host waits on an address of its own until the "
      "time-out.",
      "默认值是 127.0.0.1 和各机器自己找的空闲端口：每台机器都在自己的地址上等，直到超时。"},
     {"Set both, alike on all hosts, or let phalanx start the ranks.\n$ phalanx run -H <hosts> -- python -m llamafactory.launcher <config>",
      "在所有机器上设置相同的值，或改由 phalanx 启动。\n$ phalanx run -H <hosts> -- python -m llamafactory.launcher <config>"},
     "LLaMA-Factory src/llamafactory/launcher.py: find_available_port()",
     llamafactory_meeting},
    {"CMD-NODE-RANK-FIXED",
     Severity::kWarning,
     Group::kCommand,
     {"every host would have the same node rank", "每台机器的 node rank 都一样"},
     {"Is a node rank written by hand in words that all hosts run?", "所有机器都执行的命令里是否写死了 node rank？"},
     {"Commands to be typed on each host differ in this number; started everywhere with the same one, two hosts are number 0: \"Address "
      "already "
      "in use\", \"rank 0 of 2 ranks has already checked in\", or a wait for the host that never comes.",
      "需要在每台机器上分别敲的命令，区别就在这个编号；用同一个编号到处启动，就会有两台 0 号机器：\"Address already in use\"、"
      "\"rank 0 of 2 ranks has already checked in\"，或者一直等那台永远不会来的机器。"},
     {"Let phalanx number the hosts.\n$ phalanx run -H <hosts> -- python <script>",
      "让 phalanx 给机器编号。\n$ phalanx run -H <hosts> -- python <script>"},
     "torch/distributed/run.py; NCCL src/bootstrap.cc",
     node_rank},
    {"CMD-TORCH-LAUNCH",
     Severity::kWarning,
     Group::kCommand,
     {"the script does not know the --local-rank that torch.distributed.launch passes",
      "脚本不认识 torch.distributed.launch 传来的 --local-rank"},
     {"Does the script take --local-rank where torch 2 passes it?", "torch 2 传入 --local-rank 时，脚本能否识别？"},
     {"torch.distributed.launch passes --local-rank since torch 2.0, with a '-': \"error: unrecognized arguments: --local-rank=0\".",
      "从 torch 2.0 起 torch.distributed.launch 传的是带“-”的 --local-rank：\"error: unrecognized arguments: --local-rank=0\"。"},
     {"Read LOCAL_RANK from the environment and start with phalanx or torchrun.\n$ phalanx run -H <hosts> -- python <script>",
      "改为读取环境变量 LOCAL_RANK，用 phalanx 或 torchrun 启动。\n$ phalanx run -H <hosts> -- python <script>"},
     "torch/distributed/launch.py",
     old_launch},
};

}  // namespace

std::span<const Row> launch_rows() { return kLaunchRows; }

}  // namespace doctor
