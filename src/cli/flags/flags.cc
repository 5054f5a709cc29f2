#include "cli/flags/flags.h"

#include "base/check.h"
#include "base/text.h"

namespace phalanx::cli {

using words::Text;

const VerbRow& row(Verb verb) {
  for (const VerbRow& candidate : verb_table())
    if (candidate.verb == verb) return candidate;
  PHALANX_CHECK(!"every verb has a row");
  __builtin_unreachable();
}

const FlagRow& row(Flag flag) {
  for (const FlagRow& candidate : flag_table())
    if (candidate.flag == flag) return candidate;
  PHALANX_CHECK(!"every flag has a row");
  __builtin_unreachable();
}

const VerbRow* find_verb(std::string_view name) {
  for (const VerbRow& candidate : verb_table())
    if (candidate.name == name) return &candidate;
  return nullptr;
}

const FlagRow* find_flag(Verb verb, std::string_view name) {
  std::string dashed = base::replace_all(name, "_", "-");
  for (const FlagRow& candidate : flag_table()) {
    if ((candidate.verbs & bit(verb)) == 0) continue;
    if (candidate.name == dashed) return &candidate;
    if (candidate.aliases.empty()) continue;
    for (std::string_view alias : base::split(candidate.aliases, '|'))
      if (alias == dashed) return &candidate;
  }
  return nullptr;
}

const FlagRow* find_flag(Verb verb, char short_name) {
  for (const FlagRow& candidate : flag_table())
    if (candidate.short_name == short_name && (candidate.verbs & bit(verb)) != 0) return &candidate;
  return nullptr;
}

bool is_project_key(const FlagRow& flag) {
  if ((flag.verbs & bit(Verb::kRun)) == 0) return false;
  switch (flag.flag) {
    case Flag::kDryRun:
    case Flag::kDetach:
    case Flag::kJson:
    case Flag::kQuiet:
    case Flag::kVerbose:
    case Flag::kProject:
    case Flag::kNoProject:
    case Flag::kHelp: return false;
    default: return true;
  }
}

words::Text title(Section section) {
  switch (section) {
    case Section::kHosts: return Text{"Hosts"};
    case Section::kRanks: return Text{"Ranks"};
    case Section::kEnvironment: return Text{"Environment"};
    case Section::kConnection: return Text{"Connection"};
    case Section::kOutput: return Text{"Output"};
    case Section::kOther: return Text{"Other"};
  }
  return {};
}

}  // namespace phalanx::cli
