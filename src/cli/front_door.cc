#include "cli/front_door.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/project/find_project.h"
#include "cli/records/runs.h"
#include "frontdoor/shell_line.h"
#include "hosts/lists/allocation.h"
#include "logs/redact.h"
#include "os/files.h"
#include "os/program.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using frontdoor::Line;
using frontdoor::Translation;
using words::tr;

constexpr size_t kFileBytes = 4 << 20;

class ThisMachine : public frontdoor::Surroundings {
 public:
  std::optional<std::string> variable(const std::string& name) const override {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  base::Result<std::optional<std::string>> file(const std::string& path) const override { return os::read_if_present(path, kFileBytes); }
  bool only_ours(const std::string& path) const override { return cli::only_ours(path.starts_with("/") ? path : folder() + "/" + path); }
  bool has_program(const std::string& name) const override { return os::find_program(name, os::environment_value("PATH"), folder()).ok(); }
  std::string folder() const override { return os::current_folder(); }
};

// How many of the words are options of phalanx run; none: they are something else.
std::optional<size_t> options_before(std::span<const std::string> args) {
  size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at][0] == '-') {
    const std::string& word = args[at];
    if (word == "--") return at + 1;
    const std::string name = word.substr(0, word.find('='));
    const FlagRow* flag = word[1] == '-' ? find_flag(Verb::kRun, std::string_view(name).substr(2)) : find_flag(Verb::kRun, word[1]);
    if (!flag) return std::nullopt;
    const bool attached = word[1] == '-' ? word.find('=') != std::string::npos : word.size() > 2;
    at += takes_word(*flag) && !attached ? 2 : 1;
  }
  return std::min(at, args.size());
}

bool has_flag(const Invocation& typed, std::string_view option) {
  const FlagRow* flag = option.starts_with("--") ? find_flag(Verb::kRun, option.substr(2)) : find_flag(Verb::kRun, option[1]);
  return flag && !flag->repeatable && typed.has(flag->flag);
}

// The translated options, but for those that were typed in front of the launcher, which win.
base::Result<std::vector<std::string>> merged_options(Translation& translation, std::span<const std::string> typed_words) {
  std::vector<std::string> words = {"run"};
  words.insert(words.end(), typed_words.begin(), typed_words.end());
  TRY_ASSIGN(Invocation typed, parse_command_line(words));
  const bool lists_hosts = typed.has(Flag::kHosts) || typed.has(Flag::kHostfile);
  if (lists_hosts && (!translation.hosts.empty() || !translation.hostfile.empty()))
    return base::fail(base::ErrorKind::kUsage, fmt::format("hosts are given twice: in front of {} and by it", translation.peer))
        .with_hint("keep one of them");
  std::vector<std::string> out;
  const std::vector<std::string> translated = frontdoor::run_options_of(translation);
  for (size_t i = 0; i < translated.size(); ++i) {
    const std::string& option = translated[i];
    const FlagRow* flag = option.starts_with("--") ? find_flag(Verb::kRun, option.substr(2)) : find_flag(Verb::kRun, option[1]);
    const bool with_value = flag && takes_word(*flag);
    if (has_flag(typed, option)) {
      translation.decisions.push_back(
          {with_value ? option + " " + translated[i + 1] : option, "", tr("overridden by the option in front of {}", translation.peer)});
    } else {
      out.push_back(option);
      if (with_value) out.push_back(translated[i + 1]);
    }
    if (with_value) ++i;
  }
  out.insert(out.end(), typed_words.begin(), typed_words.end());
  return out;
}

base::Result<FrontDoor> opened(const Line& line, std::span<const std::string> typed, std::string_view verb) {
  FrontDoor door;
  TRY_ASSIGN(door.translation, frontdoor::translate(line, ThisMachine()));
  TRY_ASSIGN(std::vector<std::string> options, merged_options(door.translation, typed));
  door.args.emplace_back(verb);
  door.args.insert(door.args.end(), options.begin(), options.end());
  if (verb != "run") return door;
  door.args.emplace_back("--");
  door.args.insert(door.args.end(), door.translation.argv.begin(), door.translation.argv.end());
  return door;
}

}  // namespace

base::Result<std::optional<FrontDoor>> open_front_door(std::string_view program, std::span<const std::string> args) {
  const std::string name(program.substr(program.rfind('/') + 1));
  Line line;
  if (auto peer = frontdoor::peer_of(std::span<const std::string>(&name, 1)); peer && *peer != frontdoor::Peer::kPython) {
    line.words.assign(args.begin(), args.end());
    line.words.insert(line.words.begin(), name);
    TRY_ASSIGN(FrontDoor door, opened(line, {}, "run"));
    return std::optional<FrontDoor>(std::move(door));
  }
  if (args.empty() || find_verb(args[0])) return std::optional<FrontDoor>();
  const std::optional<size_t> before = options_before(args);
  if (!before) return std::optional<FrontDoor>();
  line.words.assign(args.begin() + static_cast<ptrdiff_t>(*before), args.end());
  frontdoor::take_prefix(line);
  if (!frontdoor::peer_of(line.words)) return std::optional<FrontDoor>();
  size_t typed = *before;
  if (typed > 0 && args[typed - 1] == "--") --typed;
  TRY_ASSIGN(FrontDoor door, opened(line, args.first(typed), "run"));
  return std::optional<FrontDoor>(std::move(door));
}

std::optional<std::string> launcher_asked_for_help(std::string_view program, std::span<const std::string> args) {
  std::vector<std::string> words(args.begin(), args.end());
  const std::string name(program.substr(program.rfind('/') + 1));
  auto is_launcher = [](const std::string& word) {
    const auto peer = frontdoor::peer_of(std::span<const std::string>(&word, 1));
    return peer && *peer != frontdoor::Peer::kPython;
  };
  if (is_launcher(name)) words.insert(words.begin(), name);
  if (words.empty() || !is_launcher(words[0])) return std::nullopt;
  const size_t at = words.size() > 2 && (words[1] == "launch" || words[1] == "train") ? 2 : 1;
  if (words.size() <= at || (words[at] != "--help" && words[at] != "-h")) return std::nullopt;
  return words[0];
}

base::Result<FrontDoor> translate_text(const std::string& from) {
  std::string text = from;
  std::string place = "--from";
  if (from.find('\n') == std::string::npos && os::exists(from) && !os::is_folder(from)) {
    TRY_ASSIGN(text, os::read_file(from, frontdoor::kLargestShellText));
    place = from;
  }
  base::Result<std::vector<frontdoor::ShellCommand>> commands = frontdoor::parse_shell(text);
  if (!commands.ok()) return std::move(commands).error().within("reading " + place);
  for (frontdoor::ShellCommand& command : *commands) {
    Line line{std::move(command.assignments), std::move(command.words)};
    while (!line.words.empty() &&
           (line.words[0] == "nohup" || line.words[0] == "exec" || line.words[0] == "env" || line.words[0] == "phalanx")) {
      line.words.erase(line.words.begin());
      frontdoor::take_prefix(line);
    }
    if (!frontdoor::peer_of(line.words)) continue;
    TRY_ASSIGN(FrontDoor door, opened(line, {}, "init"));
    for (const std::string& one : command.dropped)
      door.translation.decisions.push_back(
          {one, "", tr("phalanx run --detach continues without a terminal; phalanx logs prints the output")});
    for (const std::string& one : command.unknown)
      door.translation.findings.push_back({tr("{}: its value is not known here", "${" + one + "}"), {}});
    return door;
  }
  return base::fail(base::ErrorKind::kUsage, fmt::format("{}: no command of a launcher that Phalanx can translate", place))
      .with_hint("torchrun, python -m torch.distributed.launch, accelerate launch, deepspeed, llamafactory-cli train, and python");
}

base::Status settle_hosts(FrontDoor& door, Invocation& invocation) {
  Translation& t = door.translation;
  if (t.line_rank && invocation.has(Flag::kNodeRank))
    t.decisions[t.line_rank->decision].why = tr("overridden by the option in front of {}", t.peer);
  if (t.nodes.value_or(1) < 2 || invocation.has(Flag::kNodeRank)) return base::ok();
  TRY_ASSIGN(const std::optional<hosts::Allocation> allocation,
             hosts::slurm_allocation([](const char* name) { return os::environment_value(name); }));
  const bool named = allocation || invocation.has(Flag::kHosts) || invocation.has(Flag::kHostfile);
  if (const auto address = invocation.value(Flag::kMasterAddr)) t.master_address = *address;
  frontdoor::settle_node_rank(t, named);
  if (named) return base::ok();
  if (t.node_rank) {
    const std::string number = std::to_string(*t.node_rank);
    door.args.insert(door.args.begin() + 1, {"--node-rank", number});
    invocation.flags.push_back({find_flag(invocation.verb, "node-rank"), "--node-rank", number});
    return base::ok();
  }
  // The pod says which node it is, unless something is missing, and what (cli/by_hand/pod_place.h).
  if (!os::environment_value("KUBERNETES_SERVICE_HOST").empty() &&
      !(os::environment_value("JOB_COMPLETION_INDEX") + os::environment_value("PET_NODE_RANK") + os::environment_value("RANK")).empty())
    return base::ok();
  return base::fail(base::ErrorKind::kUsage, base::counted("{} is asked for {} nodes, but no hosts are named", t.peer, *t.nodes))
      .because("phalanx is started once, on one machine, and starts the ranks of all hosts itself")
      .with_hint(fmt::format("once, with ssh: phalanx -H HOST,HOST {0} ...; or on every machine, without ssh: phalanx --node-rank RANK "
                             "--master-addr ADDRESS {0} ...",
                             t.peer));
}

std::string run_line(const FrontDoor& door) {
  std::vector<std::string> words = {"phalanx", "run"};
  words.insert(words.end(), door.args.begin() + 1, door.args.end());
  if (door.args[0] != "run") {
    words.emplace_back("--");
    words.insert(words.end(), door.translation.argv.begin(), door.translation.argv.end());
  }
  std::erase(words, "--dry-run");
  return logs::redact(base::shell_quote(words));
}

std::string decisions_text(const FrontDoor& door, base::Language language) {
  std::string out;
  for (const frontdoor::Decision& one : door.translation.decisions) {
    const std::string& why = one.why.in(language);
    out += fmt::format("  {} → {}{}\n", logs::redact(base::printable(one.from, 4096)),
                       one.to.empty() ? std::string(words::Text{"nothing"}.in(language)) : logs::redact(base::printable(one.to, 4096)),
                       why.empty() ? "" : fmt::format("  ({})", why));
  }
  return tr(language, "{} as a command of phalanx:\n{}\n  {}\n", door.translation.peer, out, run_line(door));
}

std::string findings_text(const FrontDoor& door, base::Language language) {
  std::string out;
  for (const frontdoor::Finding& one : door.translation.findings) {
    out += tr(language, "warning: {}\n", logs::redact(base::printable(one.text.in(language), 4096)));
    if (!one.advice.empty()) out += tr(language, "  hint: {}\n", one.advice.in(language));
  }
  return out;
}

void show(const FrontDoor& door, const Invocation& invocation) {
  const base::Language language = language_here();
  std::fputs(findings_text(door, language).c_str(), stderr);
  if (invocation.has(Flag::kQuiet)) return;
  const bool planned = invocation.has(Flag::kDryRun) || invocation.verb == Verb::kInit;
  if (planned) std::fputs((decisions_text(door, language) + "\n").c_str(), invocation.has(Flag::kJson) ? stderr : stdout);
  else std::fputs(tr(language, "phalanx: {} (decisions: --dry-run)\n", run_line(door)).c_str(), stderr);
  std::fflush(stdout);
}

}  // namespace phalanx::cli
