// Completion scripts. Each is one function of the shell, with the table written into it; nothing calls phalanx back, so
// completing is quick also over a slow file system. Ids and names of runs are read from the folder of runs by the shell.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "cli/codes.h"
#include "cli/flags/reference.h"
#include "doctor/catalogue.h"

namespace phalanx::cli {
namespace {

using base::Language;

std::vector<const VerbRow*> shown_verbs() {
  std::vector<const VerbRow*> verbs;
  for (const VerbRow& verb : verb_table())
    if (!verb.hidden) verbs.push_back(&verb);
  return verbs;
}

std::string verb_names() {
  std::vector<std::string> names;
  for (const VerbRow* verb : shown_verbs()) names.emplace_back(verb->name);
  return base::join(names, " ");
}

// Every way to type the flag: -H --hosts --host
std::vector<std::string> spellings(const FlagRow& flag) {
  std::vector<std::string> all;
  if (flag.short_name) all.push_back({'-', flag.short_name});
  all.push_back("--" + std::string(flag.name));
  if (!flag.aliases.empty())
    for (std::string_view alias : base::split(flag.aliases, '|')) all.push_back("--" + std::string(alias));
  return all;
}

std::string all_codes() {
  std::vector<std::string_view> codes;
  for (const doctor::Row* row : doctor::catalogue()) codes.push_back(row->code);
  return base::join(codes, " ");
}

// The words a flag's value may be; empty: anything.
std::string words_of_choices(const FlagRow& flag) {
  return flag.flag == Flag::kOnly || flag.flag == Flag::kAccept ? all_codes() : base::replace_all(flag.choices, "|", " ");
}

bool takes_runs(Verb verb) {
  constexpr Verb kVerbs[] = {Verb::kLogs, Verb::kAttach, Verb::kStop,   Verb::kWait,   Verb::kInspect,
                             Verb::kWhy,  Verb::kStacks, Verb::kReport, Verb::kExplain};
  return std::find(std::begin(kVerbs), std::end(kVerbs), verb) != std::end(kVerbs);
}

// What kRunWords is asked for.
std::string_view which_runs(Verb verb) { return verb == Verb::kStop || verb == Verb::kAttach ? "going" : "all"; }

// What a verb's operands are completed with: words, or nothing (then files).
std::string operand_words(Verb verb) {
  if (verb == Verb::kHelp) return verb_names();
  if (verb == Verb::kCompletion) return "bash zsh fish";
  if (verb == Verb::kExplain) return base::join(every_code(), " ");
  if (verb == Verb::kBench) return "fabric";
  if (verb == Verb::kConfig) return "show";
  if (verb == Verb::kEnv) return "show push pack unpack verify diff rehome";
  return takes_runs(verb) ? "latest" : "";
}

// For sh; the same in every shell, so there is no single quote in it. Prints the ids of the newest runs and their names; with the argument
// "going", only of those that have not ended. A name has letters, digits, '.', '_' and '-' (check_run_name), and run.json one key a line.
constexpr std::string_view kRunWords =
    R"sh(case $XDG_STATE_HOME in /*) ;; *) XDG_STATE_HOME=$HOME/.local/state ;; esac
  cd "$XDG_STATE_HOME/phalanx/runs" || exit 0
  set -- "$1" $(ls -r | grep -E "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}\$" | head -n 50 | sed "s|\$|/run.json|")
  test "$1" = going && set -- "$1" $(shift; test $# -gt 0 && grep -L "^  \"state\": \"ended\"" "$@")
  shift
  test $# -gt 0 || exit 0
  printf "%s\n" "$@" | sed "s|/run.json||"
  sed -n "s/^  \"name\": \"\([A-Za-z0-9._-]*\)\",*\$/\1/p" "$@")sh";

// Bash splits words at '=' and ':' (COMP_WORDBREAKS), so "--fold=o" and "a:4" arrive in pieces: words i to last are one.
constexpr std::string_view kBash = R"(# bash completion for phalanx; load with: source <(phalanx completion bash)
_phalanx() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} takes='' flag='' words='' i=2 last
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{verbs} --help --version' -- "$cur"))
    return 0
  fi
  case $verb in
{takes}  esac
  while ((i < COMP_CWORD)); do
    last=$i
    while ((last < COMP_CWORD)) && [[ ${{COMP_WORDS[last]}} == [=:]* || ${{COMP_WORDS[last + 1]}} == [=:]* ]]; do last=$((last + 1)); done
    if [[ -z $flag && ${{COMP_WORDS[i]}} == -- ]]; then
      _phalanx_command $((i + 1))
      return 0
    elif [[ -z $flag && ${{COMP_WORDS[i]}} != -* && ($verb == run || $verb == plan) ]]; then
      _phalanx_command "$i"
      return 0
    elif [[ -n $flag ]]; then
      ((last == COMP_CWORD)) || flag=''
    elif [[ $takes == *" ${{COMP_WORDS[i]//_/-}} "* ]] && ((last == i || last == COMP_CWORD)); then
      flag=${{COMP_WORDS[i]//_/-}}
    fi
    i=$((last + 1))
  done
  [[ $cur == [=:]* ]] && cur=''
  case $verb:$flag in
{values}  esac
  case $verb in
{flags}  esac
  if [[ $cur != -* ]]; then
    words=''
    case $verb in
    run|plan) _phalanx_command "$COMP_CWORD"; return 0 ;;
{operands}    esac
    if [[ -z $words ]]; then
      _phalanx_files -f
      return 0
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
_phalanx_runs() {{
  sh -c '{runs}' sh "$1" 2>/dev/null
}}
_phalanx_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$@" -- "$cur")
}}
# The user's own command from word $1 on, by its own completion where bash-completion is loaded.
_phalanx_command() {{
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif (($1 == COMP_CWORD)); then
    _phalanx_files -c -f
  else
    _phalanx_files -f
  fi
}}
complete -F _phalanx phalanx
)";

// Branches of "case $verb:$flag": what completes the value of each flag.
std::string bash_values(const VerbRow& verb) {
  std::string out;
  for (const FlagRow* flag : flags_of(verb.verb)) {
    if (!takes_word(*flag)) continue;
    std::string action = "COMPREPLY=()";
    if (!words_of_choices(*flag).empty()) action = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", words_of_choices(*flag));
    else if (flag->kind == ValueKind::kPath) action = "_phalanx_files -f";
    else if (flag->kind == ValueKind::kDirectory) action = "_phalanx_files -d";
    out += fmt::format("  {}:{}) {}; return 0 ;;\n", verb.name, base::join(spellings(*flag), fmt::format("|{}:", verb.name)), action);
  }
  return out;
}

std::string bash_script() {
  std::string values, takes, flags, operands;
  for (const VerbRow* verb : shown_verbs()) {
    values += bash_values(*verb);
    std::vector<std::string> with_value, all;
    for (const FlagRow* flag : flags_of(verb->verb)) {
      for (const std::string& one : spellings(*flag))
        if (takes_word(*flag)) with_value.push_back(one);
      all.push_back("--" + std::string(flag->name));
      if (flag->short_name) all.push_back({'-', flag->short_name});
    }
    if (!with_value.empty()) takes += fmt::format("  {}) takes=' {} ' ;;\n", verb->name, base::join(with_value, " "));
    flags += fmt::format("  {}) words='{}' ;;\n", verb->name, base::join(all, " "));
    std::string words = operand_words(verb->verb);
    const std::string runs = takes_runs(verb->verb) ? fmt::format("\" $(_phalanx_runs {})\"", which_runs(verb->verb)) : "";
    if (!words.empty()) operands += fmt::format("    {}) words='{}'{} ;;\n", verb->name, words, runs);
  }
  return fmt::format(kBash, fmt::arg("verbs", verb_names()), fmt::arg("takes", takes), fmt::arg("values", values), fmt::arg("flags", flags),
                     fmt::arg("operands", operands), fmt::arg("runs", kRunWords));
}

// A word between single quotes of zsh or fish.
std::string single(std::string_view text) { return "'" + base::replace_all(text, "'", "'\\''") + "'"; }

std::string zsh_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_flag(const FlagRow& flag, Language language) {
  std::vector<std::string> all = spellings(flag);
  std::string action;
  if (takes_word(flag)) {
    action = fmt::format(":{}:", zsh_escape(flag.metavar));
    if (!words_of_choices(flag).empty()) action += fmt::format("({})", words_of_choices(flag));
    else if (flag.kind == ValueKind::kPath) action += "_files";
    else if (flag.kind == ValueKind::kDirectory) action += "_files -/";
    else if (flag.flag == Flag::kHosts) action += "_hosts";
    else action += " ";
  }
  std::string out;
  for (const std::string& one : all) {
    bool long_value = takes_word(flag) && one.starts_with("--");
    std::string exclusive = flag.repeatable ? "*" : fmt::format("({})", base::join(all, " "));
    out +=
        fmt::format("        {} \\\n",
                    single(fmt::format("{}{}{}[{}]{}", exclusive, one, long_value ? "=" : "", zsh_escape(flag.help.in(language)), action)));
  }
  return out;
}

std::string zsh_script(Language language) {
  std::string verbs, cases;
  for (const VerbRow* verb : shown_verbs()) {
    verbs += fmt::format("    {}\n", single(fmt::format("{}:{}", verb->name, zsh_escape(verb->summary.in(language)))));
    bool command = verb->operands == Operands::kCommand;
    cases += fmt::format("    {})\n      _arguments -s -S{} \\\n", verb->name, command ? " -A '-*'" : "");
    for (const FlagRow* flag : flags_of(verb->verb)) cases += zsh_flag(*flag, language);
    std::string words = operand_words(verb->verb);
    cases += fmt::format("        {} ;;\n", command ? "'*::command:_normal'"
                                            : takes_runs(verb->verb)
                                                ? fmt::format("'*:run: _phalanx_offer {} {}'", which_runs(verb->verb), words)
                                            : !words.empty()                    ? fmt::format("'*:topic:({})'", words)
                                            : verb->operands == Operands::kNone ? "&& return"
                                                                                : "'*:file:_files'");
  }
  return fmt::format(R"zsh(#compdef phalanx
# zsh completion for phalanx; load with: source <(phalanx completion zsh), or save as _phalanx in a folder of $fpath
_phalanx() {{
  local -a verbs=(
{0}  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{1}  esac
}}
_phalanx_offer() {{
  local which=$1
  shift
  compadd -- "$@" ${{(f)"$(sh -c '{2}' sh $which 2>/dev/null)"}}
}}
if [[ $funcstack[1] == _phalanx ]]; then _phalanx "$@"; else compdef _phalanx phalanx; fi
)zsh",
                     verbs, cases, kRunWords);
}

std::string fish_script(Language language) {
  std::string out = "# fish completion for phalanx; load with: phalanx completion fish | source\ncomplete -c phalanx -f\n";
  out += fmt::format("function __phalanx_runs\n  sh -c '{}' sh $argv[1] 2>/dev/null\nend\n", kRunWords);
  for (const VerbRow* verb : shown_verbs())
    out += fmt::format("complete -c phalanx -n __fish_use_subcommand -a {} -d {}\n", verb->name, single(verb->summary.in(language)));
  for (const VerbRow* verb : shown_verbs()) {
    std::string when = fmt::format("complete -c phalanx -n '__fish_seen_subcommand_from {}'", verb->name);
    for (const FlagRow* flag : flags_of(verb->verb)) {
      out += when;
      for (const std::string& one : spellings(*flag)) out += one[1] == '-' ? " -l " + one.substr(2) : " -s " + one.substr(1);
      if (!takes_word(*flag)) out += "";
      else if (!words_of_choices(*flag).empty()) out += fmt::format(" -x -a '{}'", words_of_choices(*flag));
      else if (flag->kind == ValueKind::kPath) out += " -r -F";
      else if (flag->kind == ValueKind::kDirectory) out += " -x -a '(__fish_complete_directories)'";
      else if (flag->kind != ValueKind::kNone) out += " -x";
      out += fmt::format(" -d {}\n", single(flag->help.in(language)));
    }
    std::string words = operand_words(verb->verb);
    if (!words.empty()) out += fmt::format("{} -a '{}'\n", when, words);
    if (takes_runs(verb->verb)) out += fmt::format("{} -a '(__phalanx_runs {})'\n", when, which_runs(verb->verb));
    else if (words.empty() && verb->operands != Operands::kNone) out += when + " -F\n";
  }
  return out;
}

}  // namespace

base::Result<std::string> completion_script(std::string_view shell, Language language) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script(language);
  if (shell == "fish") return fish_script(language);
  return base::fail(base::ErrorKind::kUsage, fmt::format("there is no completion for {}", base::quote(shell)))
      .with_hint("phalanx completion bash, or zsh, or fish");
}

}  // namespace phalanx::cli
