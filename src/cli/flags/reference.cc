#include "cli/flags/reference.h"

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::cli {

using words::Text;
using words::tr;

words::Text tagline() {
  return Text{
      "Phalanx starts a training run on any number of machines with one command. If the run fails, it names the machine, the rank, the "
      "cause, and the command that fixes it."};
}

std::vector<ExitCode> exit_codes() {
  return {
      {0, Text{"done"}},
      {1, Text{"the job failed; run and train return the exit code of the first rank that failed, if it has one (128 + N for signal N)"}},
      {2, Text{"the command line or an input file is invalid"}},
      {3, Text{"a host is unfit for the job"}},
      {4, Text{"a host cannot be reached"}},
      {5, Text{"a hang or a timeout"}},
      {70, Text{"a bug in Phalanx"}},
      {124, Text{"run, exec: the time limit of --timeout was reached"}},
      {130, Text{"interrupted (Ctrl-C)"}},
  };
}

std::span<const Launcher> launchers() {
  using frontdoor::Peer;
  static constexpr Launcher kAll[] = {
      {Peer::kTorchrun, "torchrun", "torchrun --nproc-per-node 8 train.py"},
      {Peer::kAccelerate, "accelerate launch", "accelerate launch --config_file config.yaml train.py"},
      {Peer::kDeepSpeed, "deepspeed", "deepspeed --hostfile hosts.txt train.py --deepspeed ds.json"},
      {Peer::kLlamaFactory, "llamafactory-cli train", "llamafactory-cli train config.yaml"},
      {Peer::kPython, "python", "python train.py"},
  };
  return kAll;
}

std::vector<Variable> variables_read() {
  return {
      {"PHALANX_LANG", Text{"language of messages: en or zh (default: from LC_ALL, LC_MESSAGES or LANG)"}},
      {"NO_COLOR", Text{"if not empty, disables colour for --color auto"}},
      {"XDG_STATE_HOME", Text{"base directory of the run directories (default: ~/.local/state)"}},
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
  if (flag.optional_value) out += fmt::format("[={}]", flag.metavar);
  else if (flag.kind != ValueKind::kNone) out += fmt::format(" {}", flag.metavar);
  return out;
}

std::string full_help(const FlagRow& flag, base::Language language) {
  words::Message more;
  if (flag.repeatable) more = tr("may be repeated");
  if (!flag.aliases.empty()) more.add(tr("; "), tr("also --{}", base::replace_all(flag.aliases, "|", tr(language, ", ") + "--")));
  return more.empty() ? std::string(flag.help.in(language)) : tr(language, "{} [{}]", flag.help, more);
}

}  // namespace phalanx::cli
