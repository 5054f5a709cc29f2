#include "cli/flags/reference.h"

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::cli {

base::Bilingual tagline() {
  return {
      "Phalanx starts a training run on any number of machines with one command. If the run fails, it names the machine, the rank, the "
      "cause, and the command that fixes it.",
      "Phalanx 用一条命令在任意多台机器上启动训练。运行失败时，会指出是哪台机器、哪个 rank、什么原因，以及用什么命令修复。"};
}

std::vector<ExitCode> exit_codes() {
  return {
      {0, {"done", "完成"}},
      {1,
       {"the job failed; run and train return the exit code of the first rank that failed, if it has one (128 + N for signal N)",
        "任务失败；run 和 train 返回最先失败的 rank 自己的退出码（被信号 N 终止时为 128 + N）"}},
      {2, {"the command line or an input file is invalid", "命令行或输入文件有误"}},
      {3, {"a host is unfit for the job", "某台主机不满足任务要求"}},
      {4, {"a host cannot be reached", "无法连接某台主机"}},
      {5, {"a hang or a timeout", "挂起或超时"}},
      {70, {"a bug in Phalanx", "Phalanx 自身的缺陷"}},
      {130, {"interrupted (Ctrl-C)", "被中断（Ctrl-C）"}},
  };
}

std::vector<Variable> variables_read() {
  return {
      {"PHALANX_LANG",
       {"language of messages: en or zh (default: from LC_ALL, LC_MESSAGES or LANG)",
        "界面语言：en 或 zh（默认取自 LC_ALL、LC_MESSAGES 或 LANG）"}},
      {"NO_COLOR", {"if not empty, disables colour for --color auto", "非空时 --color auto 不使用颜色"}},
      {"XDG_STATE_HOME", {"base directory of the run directories (default: ~/.local/state)", "运行目录的存放位置（默认：~/.local/state）"}},
  };
}

std::vector<const FlagRow*> flags_of(Verb verb) {
  std::vector<const FlagRow*> flags;
  for (const FlagRow& flag : flag_table())
    if ((flag.verbs & bit(verb)) != 0) flags.push_back(&flag);
  return flags;
}

std::vector<const FlagRow*> flags_of(Verb verb, Section section) {
  std::vector<const FlagRow*> flags;
  for (const FlagRow* flag : flags_of(verb))
    if (flag->section == section) flags.push_back(flag);
  return flags;
}

std::string spelling(const FlagRow& flag) {
  std::string out = flag.short_name ? fmt::format("-{}, --{}", flag.short_name, flag.name) : fmt::format("    --{}", flag.name);
  if (flag.kind != ValueKind::kNone) out += fmt::format(" {}", flag.metavar);
  return out;
}

std::string full_help(const FlagRow& flag, base::Language language) {
  bool chinese = language == base::Language::kChinese;
  std::string out(flag.help.in(language));
  std::string more;
  if (flag.repeatable) more = chinese ? "可重复" : "may be repeated";
  if (!flag.aliases.empty()) {
    if (!more.empty()) more += chinese ? "；" : "; ";
    more += (chinese ? "也可写作 --" : "also --") + base::replace_all(flag.aliases, "|", chinese ? "、--" : ", --");
  }
  if (more.empty()) return out;
  return out + (chinese ? "（" : " [") + more + (chinese ? "）" : "]");
}

}  // namespace phalanx::cli
