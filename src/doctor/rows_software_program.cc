// The program, its first line, and the Python behind it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/rows_software_parts.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string folder_of(const std::string& path) { return path.rfind('/') == std::string::npos ? "" : path.substr(0, path.rfind('/')); }

bool is_bad_first_line(const std::string& error) { return error.find("#!") != std::string::npos; }

void check_no_program(const Situation& s, Findings& findings) {
  std::string where;
  for (size_t host : probed(s))
    if (const auto& f = s.hosts[host].facts.software; f.program_error.empty() && !f.program.empty() && where.empty())
      where = fmt::format("{}: {}", s.hosts[host].name, f.program);
  for (size_t host : probed(s)) {
    const std::string& error = s.hosts[host].facts.software.program_error;
    if (s.job.argv.empty() || error.empty() || is_bad_first_line(error)) continue;
    findings.on(host, {error + (where.empty() ? "" : "; " + where), error + (where.empty() ? "" : "；" + where)},
                "command -v " + base::shell_quote(s.job.argv[0]));
  }
}

void check_shebang(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (!is_bad_first_line(f.program_error)) continue;
    std::string python = f.prefix.empty() ? "python" : f.prefix + "/bin/python";
    findings.on(
        host, {f.program_error, f.program_error},
        f.program.empty() ? "" : fmt::format("sed -i {} {}", base::shell_quote("1s|.*|#!" + python + "|"), base::shell_quote(f.program)));
  }
}

void check_moved(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    std::string names;
    const host::BadShebang* first = nullptr;
    int count = 0;
    for (const host::BadShebang& bad : f.shebangs) {
      if (bad.script == f.program && is_bad_first_line(f.program_error)) continue;
      if (!first) first = &bad;
      if (++count <= 4) names += (names.empty() ? "" : ", ") + name_of(bad.script);
    }
    if (!first) continue;
    std::string more = count > 4 ? fmt::format(" (+{})", count - 4) : "";
    findings.on(
        host,
        {fmt::format("in {}/bin: {}{} start with #!{}, which {}", f.prefix, names, more, first->interpreter, first->why),
         fmt::format("{}/bin 中的 {}{} 首行为 #!{}，该解释器无效", f.prefix, names, more, first->interpreter)},
        fmt::format("sed -i {} {}/bin/*", base::shell_quote("1s|^#!" + first->interpreter + "|#!" + f.prefix + "/bin/python|"), f.prefix));
  }
}

void check_other_python(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    std::string folder = folder_of(f.program);
    bool environment = folder.ends_with("/bin") && folder != "/usr/bin" && folder != "/bin" && folder != "/usr/local/bin" &&
                       !folder.ends_with("/.local/bin");
    if (f.assumed || f.prefix.empty() || !environment || folder == f.prefix + "/bin" || folder == folder_of(f.interpreter)) continue;
    findings.on(
        host,
        {fmt::format("{} runs the Python of {}", f.program, f.prefix), fmt::format("{} 实际运行的是 {} 的 Python", f.program, f.prefix)},
        fmt::format("head -1 {}", base::shell_quote(f.program)));
  }
}

void check_python_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    const std::string& version = h.facts.software.python;
    size_t dot = version.find('.');
    if (dot == std::string::npos || h.facts.software.assumed) return std::nullopt;
    return version.substr(0, version.find('.', dot + 1));
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    const auto& a = s.hosts[odd.hosts[0]].facts.software;
    const auto& b = s.hosts[common.hosts[0]].facts.software;
    std::string text = fmt::format("{}: Python {} ({}); {}: {} ({})", names_of(s, odd.hosts), a.python, a.interpreter,
                                   names_of(s, common.hosts), b.python, b.interpreter);
    findings.on(hosts, {text, text}, a.interpreter + " --version");
  });
}

void check_prefix_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    if (h.facts.software.prefix.empty() || h.facts.software.assumed) return std::nullopt;
    return h.facts.software.prefix;
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text = fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    findings.on(hosts, {text, text}, "command -v " + base::shell_quote(s.job.argv.empty() ? "python" : s.job.argv[0]));
  });
}

void check_launcher_old(const Situation& s, Findings& findings) {
  const auto& argv = s.job.argv;
  if (std::find(argv.begin(), argv.end(), "torch.distributed.launch") == argv.end()) return;
  for (size_t host : probed(s)) {
    std::string torch = package(s, host, "torch");
    if (torch.empty() || torch.starts_with("1.") || torch.starts_with("0.")) continue;
    findings.on(host,
                {fmt::format("python -m torch.distributed.launch with torch {}", torch),
                 fmt::format("torch {} 仍使用 python -m torch.distributed.launch", torch)},
                "torchrun --help");
  }
}

const Row kProgramRows[] = {
    {"ENV-NO-PROGRAM",
     Severity::kError,
     Group::kSoftware,
     {"the program is not there", "找不到要运行的程序"},
     {"Is the command's program on every host, by the PATH that ranks get?", "按 rank 的 PATH，每台机器上都能找到该程序吗？"},
     {"Ranks of this host end at once: \"torchrun: command not found\". A login over ssh without a terminal does not read ~/.bashrc to its "
      "end, so conda is often missing from PATH.",
      "这台机器上的 rank 会立即失败：“torchrun: command not found”。非交互式 ssh 不会完整读取 ~/.bashrc，因此 PATH 中常常没有 conda。"},
     {"Give the full path, or install it there.\n$ phalanx run -- <environment>/bin/torchrun <script>",
      "写完整路径，或在该机器上安装。\n$ phalanx run -- <environment>/bin/torchrun <script>"},
     "execvp(3)",
     check_no_program},
    {"ENV-SHEBANG",
     Severity::kError,
     Group::kSoftware,
     {"the program's first line names a Python that cannot be run", "程序首行指向的 Python 无法执行"},
     {"Can the interpreter in the program's first line be executed?", "程序首行（shebang）中的解释器能执行吗？"},
     {"\"bad interpreter: No such file or directory\": the environment was copied by tar or scp, and bin/torchrun still names the folder "
      "it came from.",
      "报 “bad interpreter: No such file or directory”：环境是用 tar 或 scp 拷来的，bin/torchrun 首行仍指向原来的目录。"},
     {"Correct the first line, or start it as a module.\n$ python -m torch.distributed.run <script>",
      "改正首行，或以模块方式启动。\n$ python -m torch.distributed.run <script>"},
     "execve(2)",
     check_shebang},
    {"ENV-MOVED",
     Severity::kWarning,
     Group::kSoftware,
     {"scripts of the environment lead to another Python", "环境中的脚本指向别处的 Python"},
     {"Do the scripts in the environment's bin/ run its own Python?", "环境 bin/ 下的脚本运行的是本环境的 Python 吗？"},
     {"Scripts whose first line names another place fail with \"bad interpreter\", or run with other packages than you think.",
      "首行指向别处的脚本会报 “bad interpreter”，或使用与预期不同的软件包。"},
     {"Correct the first lines.\n$ sed -i '1s|^#!<old environment>/bin/python|#!<environment>/bin/python|' <environment>/bin/*",
      "改正这些首行。\n$ sed -i '1s|^#!<old environment>/bin/python|#!<environment>/bin/python|' <environment>/bin/*"},
     "conda-pack documentation",
     check_moved},
    {"ENV-OTHER-PYTHON",
     Severity::kWarning,
     Group::kSoftware,
     {"the program runs another environment's Python", "程序运行的是另一个环境的 Python"},
     {"Does the program run the Python beside it?", "程序运行的是与它同目录的 Python 吗？"},
     {"A copied environment works as long as the original is there, and uses the original's packages: changes to the copy have no effect.",
      "拷贝出来的环境只要原目录还在就能运行，但用的是原环境的软件包：对拷贝的修改不起作用。"},
     {"Look at its first line.\n$ head -1 \"$(command -v torchrun)\"", "查看其首行。\n$ head -1 \"$(command -v torchrun)\""},
     "execve(2)",
     check_other_python},
    {"ENV-PYTHON-DIFFERS",
     Severity::kWarning,
     Group::kSoftware,
     {"Python is not the same version on all hosts", "各机器的 Python 版本不同"},
     {"Do all hosts run the same minor version of Python?", "各机器的 Python 次版本号一致吗？"},
     {"Objects sent between ranks (pickle) and compiled packages do not fit: \"unsupported pickle protocol\", \"bad marshal data\", import "
      "errors on one host.",
      "rank 之间传递的对象（pickle）和编译过的包不兼容：“unsupported pickle protocol”、“bad marshal data”，或仅某台机器导入失败。"},
     {"Use one environment on all hosts.\n$ python --version", "所有机器使用同一环境。\n$ python --version"},
     "",
     check_python_differs},
    {"ENV-PREFIX-DIFFERS",
     Severity::kNote,
     Group::kSoftware,
     {"the environment lies in different places", "环境所在目录不同"},
     {"Does the command use the same environment folder on all hosts?", "各机器使用的环境目录相同吗？"},
     {"It may be on purpose; often one host falls back to base or to the system's Python because PATH differs.",
      "这可能是有意为之；但常常是因为 PATH 不同，某台机器落到了 base 或系统 Python。"},
     {"Name the program by its full path.\n$ command -v python", "用完整路径指定程序。\n$ command -v python"},
     "",
     check_prefix_differs},
    {"ENV-LAUNCHER-OLD",
     Severity::kWarning,
     Group::kSoftware,
     {"torch.distributed.launch is used with torch 2", "在 torch 2 上使用 torch.distributed.launch"},
     {"Is the launcher the one this torch expects?", "启动器与当前 torch 匹配吗？"},
     {"Since torch 2 it passes --local-rank with a hyphen; scripts that parse --local_rank end with \"error: unrecognized arguments: "
      "--local-rank=0\".",
      "torch 2 起它传递的是带连字符的 --local-rank；解析 --local_rank 的脚本会报 “error: unrecognized arguments: --local-rank=0”。"},
     {"Use torchrun, and read LOCAL_RANK from the environment.\n$ torchrun --nproc-per-node <gpus> <script>",
      "改用 torchrun，并从环境变量 LOCAL_RANK 读取。\n$ torchrun --nproc-per-node <gpus> <script>"},
     "torch/distributed/launch.py",
     check_launcher_old},
};

}  // namespace

std::span<const Row> program_rows() { return kProgramRows; }

}  // namespace doctor
