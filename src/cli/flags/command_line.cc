#include "cli/flags/command_line.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/foreign_words.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::Result;
using base::Status;

using base::usage;

std::string help_command(const VerbRow& verb) { return fmt::format("phalanx help {}", verb.name); }

Error unknown_verb(std::string_view word) {
  if (word.starts_with("-"))
    return usage(fmt::format("{} must come after the verb", base::quote(word)), "put options after it: phalanx run [options] -- command");
  std::vector<std::string> names;
  for (const VerbRow& verb : verb_table())
    if (!verb.hidden) names.emplace_back(verb.name);
  auto foreign = advice_for_foreign_verb(word);
  auto near = base::closest(word, names);
  bool program = word.find_first_of("./") != std::string_view::npos || word.starts_with("python");
  return usage(fmt::format("{} is not a verb of phalanx", base::quote(word)),
               foreign   ? *foreign
               : near    ? fmt::format("did you mean phalanx {}?", *near)
               : program ? fmt::format("phalanx run -- {} ...", base::shell_quote(word))
                         : "phalanx help");
}

// What the user may have meant by a long flag this verb does not have.
std::string flag_hint(const VerbRow& verb, std::string_view name) {
  if (auto advice = advice_for_foreign_option(verb.verb, name)) return *advice;
  std::string dashed = base::replace_all(name, "_", "-");
  std::vector<std::string> names;
  for (const FlagRow& flag : flag_table()) {
    if ((flag.verbs & bit(verb.verb)) == 0) continue;
    if (!dashed.empty() && flag.name.starts_with(dashed)) return fmt::format("did you mean --{}?", flag.name);
    names.emplace_back(flag.name);
    if (flag.aliases.empty()) continue;
    for (std::string_view alias : base::split(flag.aliases, '|')) names.emplace_back(alias);
  }
  if (auto near = base::closest(dashed, names)) return fmt::format("did you mean --{}?", find_flag(verb.verb, *near)->name);
  return verb.operands == Operands::kCommand ? "options of your own command come after it, or after --" : help_command(verb);
}

class Reader {
 public:
  Reader(const VerbRow& verb, std::span<const std::string> words) : verb_(verb), words_(words) { invocation_.verb = verb.verb; }

  Result<Invocation> read() {
    while (next_ < words_.size() && !wants_help_) {
      const std::string& word = words_[next_];
      bool flag = word.size() > 1 && word[0] == '-' && verb_.operands != Operands::kRaw;
      if (word == "--" && flag) {
        ++next_;
        break;
      }
      if (flag) {
        ++next_;
        TRY(word[1] == '-' ? take_long(word) : take_short(word));
      } else if (verb_.operands == Operands::kMixed || verb_.operands == Operands::kSplit) {
        invocation_.operands.push_back(words_[next_++]);
      } else {
        break;
      }
    }
    if (wants_help_) return Invocation{Verb::kHelp, {}, {std::string(verb_.name)}, {}};
    std::vector<std::string>& rest = verb_.operands == Operands::kSplit ? invocation_.command : invocation_.operands;
    rest.insert(rest.end(), words_.begin() + static_cast<ptrdiff_t>(next_), words_.end());
    if (verb_.operands == Operands::kNone && !invocation_.operands.empty())
      return usage(fmt::format("phalanx {} takes no arguments: {}", verb_.name, base::quote(invocation_.operands[0])), help_command(verb_));
    return std::move(invocation_);
  }

 private:
  Status take_long(std::string_view word) {
    size_t equals = word.find('=');
    std::string_view typed = word.substr(0, equals);
    const FlagRow* flag = find_flag(verb_.verb, typed.substr(2));
    if (!flag)
      return usage(fmt::format("phalanx {} has no option {}", verb_.name, base::printable(typed)), flag_hint(verb_, typed.substr(2)));
    bool attached = equals != std::string_view::npos;
    if (flag->kind == ValueKind::kNone) {
      if (attached && is_project_key(*flag) && word.substr(equals + 1) == "false") {
        invocation_.off.push_back(flag);
        return base::ok();
      }
      if (attached) return usage(fmt::format("{} takes no value: {}", typed, base::quote(word)), fmt::format("write {}", typed));
      return add(*flag, typed, "");
    }
    if (attached) return add(*flag, typed, word.substr(equals + 1));
    return flag->optional_value ? add(*flag, typed, "") : take_next(*flag, typed);
  }

  // "-q", "-qv", "-H value", "-Hvalue"
  Status take_short(std::string_view word) {
    // "-env A=1" is --env with a dash too few, not -e with the value "nv".
    std::string_view name = word.substr(1);
    if (name.size() > 1 && find_flag(verb_.verb, name.substr(0, name.find('='))))
      return usage(fmt::format("{} is not an option", base::quote(word)),
                   fmt::format("long options have two dashes: -{}", base::printable(word)));
    for (size_t i = 1; i < word.size(); ++i) {
      const FlagRow* flag = find_flag(verb_.verb, word[i]);
      if (!flag) return unknown_short(word, i);
      std::string typed = {'-', word[i]};
      if (flag->kind == ValueKind::kNone) {
        if (i + 1 == word.size() && next_ < words_.size()) TRY(expect_ours(*flag, typed, words_[next_]));
        TRY(add(*flag, typed, ""));
        continue;
      }
      return i + 1 < word.size() ? add(*flag, typed, word.substr(i + 1)) : take_next(*flag, typed);
    }
    return base::ok();
  }

  Status unknown_short(std::string_view word, size_t at) {
    std::string_view name = word.substr(1);
    size_t length = base::first_character(word.substr(at)).length;
    auto advice = advice_for_foreign_option(verb_.verb, name);
    if (!advice) advice = advice_for_foreign_option(verb_.verb, word.substr(at, length));
    return usage(fmt::format("phalanx {} has no option -{}{}", verb_.name, base::printable(word.substr(at, length)),
                             name.size() > length ? fmt::format(" (in {})", base::quote(word)) : ""),
                 advice ? *advice : flag_hint(verb_, ""));
  }

  Status take_next(const FlagRow& flag, std::string_view typed) {
    std::string example = fmt::format("write {} {}", typed, flag.metavar);
    if (next_ == words_.size()) return usage(fmt::format("{} needs a value", typed), std::move(example));
    std::string_view word = words_[next_];
    // What is for another program begins with dashes, and is more than one word.
    const bool others = flag.flag == Flag::kContainerArgs && word.find(' ') != std::string_view::npos;
    bool another = !others && (word.starts_with("--") || (word.size() == 2 && word[0] == '-' && find_flag(verb_.verb, word[1])));
    if (another) {
      if (word.size() > 2) example += "; " + fmt::format("if it is the value, write --{}={}", flag.name, base::printable(word));
      return usage(fmt::format("{} needs a value, but {} follows", typed, base::quote(word)), std::move(example));
    }
    ++next_;
    return add(flag, typed, word);
  }

  static Status expect_ours(const FlagRow& flag, std::string_view typed, std::string_view value) {
    auto foreign = advice_for_foreign_value(flag, typed, value);
    if (!foreign) return base::ok();
    return usage(std::move(foreign->message), std::move(foreign->advice));
  }

  Status add(const FlagRow& flag, std::string_view typed, std::string_view value) {
    if (flag.flag == Flag::kHelp) wants_help_ = true;
    if (flag.kind != ValueKind::kNone && !(flag.optional_value && value.empty())) TRY(check_value(flag, typed, value));
    TRY(expect_ours(flag, typed, value));
    for (const GivenFlag& before : invocation_.flags) {
      if (before.row != &flag || flag.repeatable) continue;
      std::string first = before.value.empty() ? before.typed : fmt::format("{} {}", before.typed, base::printable(before.value));
      std::string second = value.empty() ? std::string(typed) : fmt::format("{} {}", typed, base::printable(value));
      return usage(fmt::format("--{} is given twice: {} and {}", flag.name, first, second), "keep one of them");
    }
    invocation_.flags.push_back({&flag, std::string(typed), std::string(value)});
    return base::ok();
  }

  const VerbRow& verb_;
  std::span<const std::string> words_;
  size_t next_ = 0;
  bool wants_help_ = false;
  Invocation invocation_;
};

}  // namespace

bool Invocation::has(Flag flag) const {
  for (const GivenFlag& given : flags)
    if (given.row->flag == flag) return true;
  return false;
}

std::optional<std::string> Invocation::value(Flag flag) const {
  for (const GivenFlag& given : flags)
    if (given.row->flag == flag) return given.value;
  return std::nullopt;
}

std::vector<std::string> Invocation::values(Flag flag) const {
  std::vector<std::string> all;
  for (const GivenFlag& given : flags)
    if (given.row->flag == flag) all.push_back(given.value);
  return all;
}

Result<Invocation> parse_command_line(std::span<const std::string> args) {
  if (args.empty()) return Invocation{};
  if (args[0] == "--help" || args[0] == "-h") return Invocation{};
  if (args[0] == "--version" || args[0] == "-V") return Invocation{Verb::kVersion, {}, {}, {}};
  const VerbRow* verb = find_verb(args[0]);
  if (!verb) return unknown_verb(args[0]);
  return Reader(*verb, args.subspan(1)).read();
}

}  // namespace phalanx::cli
