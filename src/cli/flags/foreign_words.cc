#include "cli/flags/foreign_words.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unicode.h"
#include "codes/values.h"
#include "frontdoor/peer_flags.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

uint32_t bits_of(std::string_view verbs) {
  uint32_t bits = 0;
  for (std::string_view name : base::split_words(verbs)) {
    const VerbRow* verb = find_verb(name);
    PHALANX_CHECK(verb != nullptr);
    bits |= bit(verb->verb);
  }
  return bits;
}

// Of the options those that mean something at some verbs only, or those of any verb.
std::vector<ForeignWord> options_of(bool some_verbs) {
  const codes::ValueTable& table = codes::values("foreign-options");
  std::vector<ForeignWord> rows;
  for (size_t i = 0; i < table.size(); ++i) {
    const codes::ValueRow row = table.row(i);
    if (row[1].empty() != some_verbs) rows.push_back({row[2], row[0], row[3], bits_of(row[1])});
  }
  return rows;
}

// What a front door makes of an option that has no row above: it takes --zero-stage, and says why there is no --tpu.
std::optional<std::string> advice_of_a_door(std::string_view name) {
  struct Door {
    std::string_view line;
    std::span<const frontdoor::PeerFlag> flags;
  };
  const Door doors[] = {{"torchrun", frontdoor::torchrun_flags()},
                        {"python -m torch.distributed.launch", frontdoor::launch_flags()},
                        {"accelerate launch", frontdoor::accelerate_flags()},
                        {"deepspeed", frontdoor::deepspeed_flags()}};
  for (const Door& door : doors)
    for (const frontdoor::PeerFlag& flag : door.flags)
      for (std::string_view known : base::split(flag.names, '|'))
        if (known == name && name.size() > 1)
          return flag.answer == frontdoor::Answer::kHonoured ? fmt::format("use phalanx {}, which takes it", door.line)
                                                             : std::string(flag.why.english);
  return std::nullopt;
}

// Whether all options that an advice names are options of this verb; those behind "phalanx logs", of that one.
bool holds_for(Verb verb, std::string_view advice) {
  std::string_view before;
  for (std::string_view word : base::split_words(advice)) {
    const size_t at = word.find("--");
    const VerbRow* named = before == "phalanx" ? find_verb(word) : nullptr;
    if (named) verb = named->verb;
    before = word;
    if (at > 1 || at + 2 >= word.size()) continue;
    if (!find_flag(verb, word.substr(at + 2, word.find_first_of(",;:)=", at) - at - 2))) return false;
  }
  return true;
}

bool is_named(std::string_view names, std::string_view word) {
  for (std::string_view name : base::split(names, '|'))
    if (name == word) return true;
  return false;
}

const ForeignWord* find_in(std::span<const ForeignWord> table, std::string_view word, uint32_t verb = 0) {
  for (const ForeignWord& row : table)
    if ((row.verbs & verb) == verb && is_named(row.word, word)) return &row;
  return nullptr;
}

}  // namespace

std::span<const ForeignWord> foreign_verbs() {
  static const std::vector<ForeignWord> rows = [] {
    const codes::ValueTable& table = codes::values("foreign-verbs");
    std::vector<ForeignWord> all;
    for (size_t i = 0; i < table.size(); ++i) all.push_back({table.row(i)[1], table.row(i)[0], table.row(i)[2]});
    return all;
  }();
  return rows;
}

std::span<const ForeignWord> foreign_options() {
  static const std::vector<ForeignWord> rows = options_of(false);
  return rows;
}

std::span<const ForeignWord> foreign_options_of_verbs() {
  static const std::vector<ForeignWord> rows = options_of(true);
  return rows;
}

std::optional<std::string> advice_for_foreign_verb(std::string_view word) {
  const ForeignWord* row = find_in(foreign_verbs(), word);
  return row ? std::optional(std::string(row->advice)) : std::nullopt;
}

std::optional<std::string> advice_for_foreign_option(Verb verb, std::string_view name) {
  const std::string dashed = base::replace_all(name, "_", "-");
  const ForeignWord* row = find_in(foreign_options_of_verbs(), dashed, bit(verb));
  if (!row) row = find_in(foreign_options(), dashed);
  if (row) return holds_for(verb, row->advice) ? std::optional(std::string(row->advice)) : std::nullopt;
  constexpr uint32_t kStartVerbs = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | bit(Verb::kSubmit) | bit(Verb::kInit);
  return (kStartVerbs & bit(verb)) != 0 ? advice_of_a_door(dashed) : std::nullopt;
}

std::optional<ForeignValue> advice_for_foreign_value(const FlagRow& flag, std::string_view typed, std::string_view value) {
  const std::string given = base::quote(value);
  if (flag.flag == Flag::kInclude && typed == "-i" && (value == "t" || value == "-t"))
    return ForeignValue{fmt::format("{} {}: a terminal, not a host", typed, given), "omit it: the output is shown here; -i is --include"};
  const bool path = value.starts_with('/') || value.starts_with('.') || value.starts_with('~');
  if (flag.flag == Flag::kVerbose && typed == "-v" && path && value.find(':') != std::string_view::npos)
    return ForeignValue{
        fmt::format("{} {}: a volume, not a command", typed, given),
        fmt::format("write it in --container-args, beside --container docker-image:IMAGE: --container-args {}; -v is --verbose",
                    base::shell_quote(fmt::format("-v {}", base::printable(value))))};
  if (flag.flag != Flag::kExclude || typed != "-e") return std::nullopt;
  const size_t equals = value.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;  // no name of a host has this character
  return ForeignValue{fmt::format("{} {}: a variable, not a host", typed, given),
                      fmt::format("write --env {}; -e is --exclude", base::shell_quote(base::printable(value)))};
}

}  // namespace phalanx::cli
