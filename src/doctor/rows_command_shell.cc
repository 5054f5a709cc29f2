// Lints of shell scripts that launch.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/rows_command.h"

namespace doctor {
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
      tell(findings, s, file.hosts,
           {fmt::format("{} begins with {}", name, base::shell_quote(first)),
            fmt::format("{} 的第一行是 {}", name, base::shell_quote(first))},
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
    tell(findings, s, file.hosts,
         {fmt::format("{}: {} of {} lines end in CR LF", name, ends, lines),
          fmt::format("{}：{} 行中有 {} 行以 CR LF 结尾", name, lines, ends)},
         fmt::format("sed -i 's/\\r$//' {}", base::shell_quote(file.file->path)));
  }
}

void log_folder(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const host::ShellOutput& o : s.hosts[h].facts.command.outputs) {
      if (o.folder_exists || o.folder_made) continue;
      std::string at = o.file.empty() ? "" : fmt::format("{}:{}: ", shown(s, o.file), o.line);
      findings.on(h,
                  {fmt::format("{}output goes to {}, but there is no folder {}", at, shown(s, o.target), o.folder),
                   fmt::format("{}输出写到 {}，但目录 {} 不存在", at, shown(s, o.target), o.folder)},
                  "mkdir -p " + base::shell_quote(o.folder));
    }
  }
}

void log_shared(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const host::ShellOutput& o : s.hosts[h].facts.command.outputs) {
      if (!o.launch || o.file.empty() || s.hosts[h].ranks < 2) continue;
      findings.on(h, {fmt::format("{}:{}: all {} ranks write {}", shown(s, o.file), o.line, s.hosts[h].ranks, shown(s, o.target)),
                      fmt::format("{}:{}：{} 个 rank 都写 {}", shown(s, o.file), o.line, s.hosts[h].ranks, shown(s, o.target))});
    }
  }
}

void background(const Situation& s, Findings& findings) {
  for (const UserLaunch& launch : user_launches(s)) {
    const host::LaunchLine& l = *launch.line;
    if (!l.background || l.file.empty() || l.launcher == "shell") continue;
    bool waits = false;
    for (const UserFile& file : user_files(s, "shell"))
      if (file.file->path == l.file)
        for (std::string_view line : base::split_lines(file.file->text)) waits = waits || base::trim(line).starts_with("wait");
    if (waits) continue;
    Words at = place(s, l);
    tell(findings, s, launch.hosts,
         {fmt::format("{} starts {} with '&', and the script never waits for it", at.english, l.program),
          fmt::format("{} 用 '&' 在后台启动 {}，而脚本从不 wait", at.chinese, l.program)},
         "echo wait >> " + base::shell_quote(l.file));
  }
}

// Variables a launcher gives every rank, written as a number in front of the program or exported before.
void fixed_variable(const Situation& s, Findings& findings, const std::string& name, bool (*harms)(const Situation&, size_t, int64_t)) {
  for (const UserLaunch& launch : user_launches(s)) {
    const host::LaunchLine& l = *launch.line;
    auto found = l.variables.find(name);
    if (found == l.variables.end() || !whole_number(found->second) || l.launcher == "shell" || l.launcher == "direct") continue;
    std::vector<size_t> hosts;
    for (size_t h : launch.hosts)
      if (harms(s, h, std::stoll(found->second))) hosts.push_back(h);
    if (hosts.empty()) continue;
    Words at = place(s, l);
    const HostView& first = s.hosts[hosts.front()];
    tell(findings, s, hosts,
         {fmt::format("{} sets {}={}; {} ranks in all, {} on {}", at.english, name, found->second, s.job.world, first.ranks, first.name),
          fmt::format("{} 设置了 {}={}；共 {} 个 rank，其中 {} 上有 {} 个", at.chinese, name, found->second, s.job.world, first.name,
                      first.ranks)},
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
  for (const host::Interface& i : s.hosts[0].facts.network.interfaces)
    for (const host::InterfaceAddressFact& a : i.addresses)
      if (!i.loopback) first.push_back(a.address);
  for (const UserLaunch& launch : user_launches(s)) {
    auto found = launch.line->variables.find("MASTER_ADDR");
    if (found == launch.line->variables.end() || found->second.empty() || found->second.find('$') != std::string::npos) continue;
    if (launch.line->launcher == "shell" || launch.line->launcher == "direct") continue;
    if (std::find(first.begin(), first.end(), found->second) != first.end()) continue;
    Words at = place(s, *launch.line);
    tell(
        findings, s, launch.hosts,
        {fmt::format("{} sets MASTER_ADDR={}; rank 0 runs on {} ({})", at.english, found->second, s.hosts[0].name, s.hosts[0].address),
         fmt::format("{} 设置了 MASTER_ADDR={}；而 rank 0 在 {}（{}）上", at.chinese, found->second, s.hosts[0].name, s.hosts[0].address)});
  }
}

constexpr Row kShellRows[] = {
    {"CMD-SHEBANG",
     Severity::kWarning,
     Group::kCommand,
     {"a script's first line is no #! line", "脚本第一行不是合法的 #! 行"},
     {"Does a script that is started by its own name begin with #!?", "以自身名字启动的脚本，第一行是否以 #! 开头？"},
     {"Without the '!' the line is a comment and names no interpreter. A shell that starts the script reads it by itself and nothing seems "
      "wrong; anything else (ssh, srun, systemd, Python's subprocess, a launcher) gets \"Exec format error\", or runs it with /bin/sh.",
      "少了“!”，这一行就只是注释，没有指定解释器。从 shell 里启动时 shell 会自行解释，看不出问题；"
      "换成 ssh、srun、systemd、Python subprocess 或启动器启动时，会报 \"Exec format error\"，或被 /bin/sh 执行。"},
     {"Write the first line as #!/bin/bash.\n$ sed -i '1s|.*|#!/bin/bash|' <script>",
      "把第一行写成 #!/bin/bash。\n$ sed -i '1s|.*|#!/bin/bash|' <script>"},
     "execve(2): Interpreter scripts; a field note's run_ddp_train.sh begins with #/bin/bash",
     shebang},
    {"CMD-CRLF",
     Severity::kWarning,
     Group::kCommand,
     {"a shell script has Windows line ends", "Shell 脚本使用了 Windows 换行符"},
     {"Do the lines of the shell scripts end in LF alone?", "Shell 脚本的行尾是否只有 LF？"},
     {"The carriage return becomes part of the last word of every line: \"/bin/bash^M: bad interpreter: No such file or directory\", "
      "\"$'\\r': command not found\", and paths or options that end in an invisible character.",
      "回车符会成为每行最后一个词的一部分：\"/bin/bash^M: bad interpreter: No such file or directory\"、"
      "\"$'\\r': command not found\"，路径和参数末尾也会多出一个看不见的字符。"},
     {"Take the carriage returns out.\n$ sed -i 's/\\r$//' <script>", "去掉回车符。\n$ sed -i 's/\\r$//' <script>"},
     "",
     crlf},
    {"CMD-LOG-FOLDER",
     Severity::kWarning,
     Group::kCommand,
     {"a script writes to a log in a folder that does not exist", "脚本要写的日志目录不存在"},
     {"Does the folder of every > and >> in the scripts exist on each host?", "脚本里每个 > 和 >> 的目标目录在各台机器上是否存在？"},
     {"The shell opens the log before it starts the program. Where the folder is missing it says \"No such file or directory\" and the "
      "program "
      "is never started; run with nohup and '&', nobody sees it.",
      "Shell 在启动程序之前先打开日志文件。目录不存在时报 \"No such file or directory\"，程序根本不会启动；如果又用了 nohup "
      "和“&”，就没人看得到这条报错。"},
     {"Make the folder, best in the script itself.\n$ mkdir -p logs/nohup_logs", "先建目录，最好写进脚本里。\n$ mkdir -p logs/nohup_logs"},
     "a field note's run_ddp_train.sh writes logs/nohup_logs/nohup.gan.ddp.log",
     log_folder},
    {"CMD-LOG-SHARED",
     Severity::kNote,
     Group::kCommand,
     {"all ranks of a host write to one log file", "同一台机器的所有 rank 写同一个日志文件"},
     {"Does each rank have a log of its own?", "每个 rank 是否有自己的日志文件？"},
     {"Every rank runs the script, so every rank opens and empties the same file: lines are lost or interleaved, and the first error may "
      "be "
      "overwritten by the last victim.",
      "每个 rank 都会执行这个脚本，于是都会打开并清空同一个文件：日志行丢失或交错，最先出现的错误可能被最后倒下的 rank 覆盖。"},
     {"Leave the redirection out: phalanx keeps a log per rank.\n$ phalanx run --log-dir logs -- python <script>",
      "去掉重定向即可：phalanx 会为每个 rank 单独保存日志。\n$ phalanx run --log-dir logs -- python <script>"},
     "",
     log_shared},
    {"CMD-BACKGROUND",
     Severity::kWarning,
     Group::kCommand,
     {"a script puts the training into the background and ends", "脚本把训练放到后台后就退出了"},
     {"Does the script live as long as the program it starts?", "脚本是否与它启动的程序同生共死？"},
     {"When the script ends, the rank has ended: the job counts as done at once, and what it left behind is stopped. In other launchers it "
      "stays behind as an orphan that holds GPU memory and the port.",
      "脚本一结束，这个 rank 就算结束：任务立即被当成完成，遗留的进程随之被停掉。换成别的启动器，它会成为孤儿进程，继续占着显存和端口。"},
     {"Take '&' (and nohup) away, or end the script with wait.\n$ echo wait >> <script>",
      "去掉“&”（和 nohup），或在脚本末尾加 wait。\n$ echo wait >> <script>"},
     "",
     background},
    {"CMD-LOCAL-RANK-FIXED",
     Severity::kWarning,
     Group::kCommand,
     {"LOCAL_RANK is written by hand", "LOCAL_RANK 被手工写死"},
     {"Is LOCAL_RANK left to the launcher where a host has several ranks?", "一台机器有多个 rank 时，LOCAL_RANK 是否交给启动器设置？"},
     {"Every rank of the host gets the same number and takes the same GPU: \"Duplicate GPU detected : rank 0 and rank 1 both on CUDA "
      "device "
      "34000\", or out of memory on GPU 0. With one rank on each host it happens to be right.",
      "同一台机器上的 rank 拿到相同的编号，抢同一块 GPU：\"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 34000\"，或 GPU "
      "0 显存不足。"
      "只有每台机器恰好一个 rank 时才碰巧正确。"},
     {"Take LOCAL_RANK out of the script; the launcher sets it for every rank.\n$ phalanx run -H <hosts> -- python <script>",
      "从脚本里删掉 LOCAL_RANK，由启动器为每个 rank 设置。\n$ phalanx run -H <hosts> -- python <script>"},
     "NCCL src/init.cc; a field note starts Lightning with LOCAL_RANK=0",
     local_rank},
    {"CMD-RANK-FIXED",
     Severity::kWarning,
     Group::kCommand,
     {"RANK is written by hand", "RANK 被手工写死"},
     {"Is RANK left to the launcher?", "RANK 是否交给启动器设置？"},
     {"The same words start on every host, so all ranks have this number: the store waits for the others for ever (\"Timed out after 1801 "
      "seconds waiting for clients. 1/2 clients joined.\"), or two ranks 0 fight for the port.",
      "每台机器执行同样的命令，于是所有 rank 编号相同：store 永远等不齐（\"Timed out after 1801 seconds waiting for clients. 1/2 clients "
      "joined.\"），"
      "或者两个 rank 0 抢同一个端口。"},
     {"Take RANK out of the script.\n$ phalanx run -H <hosts> -- python <script>",
      "从脚本里删掉 RANK。\n$ phalanx run -H <hosts> -- python <script>"},
     "",
     rank_fixed},
    {"CMD-WORLD-SIZE-FIXED",
     Severity::kWarning,
     Group::kCommand,
     {"WORLD_SIZE is written by hand and is not the number of ranks", "WORLD_SIZE 被手工写死，且与 rank 数不符"},
     {"Does a WORLD_SIZE in the scripts agree with the ranks that start?", "脚本里的 WORLD_SIZE 与实际启动的 rank 数是否一致？"},
     {"Too large: all wait for ranks that never come. Too small: the first ranks train alone, the others fail with \"Invalid rank\" or "
      "hang.",
      "写大了：所有 rank 都在等不存在的 rank。写小了：前几个 rank 自己开始训练，其余报 \"Invalid rank\" 或卡住。"},
     {"Take WORLD_SIZE out of the script; the launcher sets it.\n$ phalanx plan -H <hosts> -- python <script>",
      "从脚本里删掉 WORLD_SIZE，由启动器设置。\n$ phalanx plan -H <hosts> -- python <script>"},
     "",
     world_size},
    {"CMD-MASTER-FIXED",
     Severity::kWarning,
     Group::kCommand,
     {"a script's MASTER_ADDR is not the host of rank 0", "脚本里的 MASTER_ADDR 不是 rank 0 所在的机器"},
     {"Is a MASTER_ADDR that a script sets an address of the first host?", "脚本设置的 MASTER_ADDR 是不是第一台机器的地址？"},
     {"What the script sets replaces what the launcher gave. Nobody listens at that address: \"The client socket has timed out after "
      "600000ms "
      "while trying to connect to\" it.",
      "脚本里的设置会覆盖启动器给出的值。那个地址上没有人监听：\"The client socket has timed out after 600000ms while trying to connect to "
      "…\"。"},
     {"Take MASTER_ADDR and MASTER_PORT out of the script, or put that host first.\n$ phalanx plan -H <hosts> -- python <script>",
      "从脚本里删掉 MASTER_ADDR 与 MASTER_PORT，或把那台机器放在第一位。\n$ phalanx plan -H <hosts> -- python <script>"},
     "torch/csrc/distributed/c10d/socket.cpp",
     master_fixed},
};

}  // namespace

std::span<const Row> shell_rows() { return kShellRows; }

}  // namespace doctor
