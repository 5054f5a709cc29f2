// The one table of the command line. Parser, --help, man page, completions and docs/cli.md are all made from these rows
// (flag_table.cc): to add a flag, add a row, an enumerator, and the field that receives it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/language.h"
#include "cli/flags/verb.h"
#include "words/message.h"

namespace phalanx::cli {

enum class Flag {
  kHosts,
  kHostfile,
  kInclude,
  kExclude,
  kNnodes,
  kSpares,
  kNproc,
  kMasterAddr,
  kMasterPort,
  kSplitLogs,
  kShow,
  kContainer,
  kContainerArgs,
  kNodeRank,
  kTokenFile,
  kJoinTimeout,
  kNoStore,
  kLocalRankMacro,
  kWorkdir,
  kGrace,
  kFailureGrace,
  kLease,
  kStall,
  kOnStall,
  kPythonHook,
  kCheckData,
  kMaxRestarts,
  kDryRun,
  kDetach,
  kSync,
  kSyncMax,
  kTo,
  kDelete,
  kName,
  kNodes,
  kSbatch,
  kImage,
  kGpusPerNode,
  kVolume,
  kRequeue,
  kTimeout,
  kAttempt,
  kYes,
  kCacheOnly,
  kCleanAll,
  kOldPrefix,
  kPartial,
  kFollow,
  kTail,
  kTimestamps,
  kRank,
  kOnHost,
  kKill,
  kEveryRun,
  kReportFile,
  kPreflight,
  kReuseChecks,
  kAccept,
  kProject,
  kNoProject,
  kOrigin,
  kFrom,
  kGpus,
  kIface,
  kSeconds,
  kParams,
  kGpuMemory,
  kSequence,
  kBatch,
  kAccumulate,
  kPrecision,
  kNoFlash,
  kLora,
  kOnly,
  kFailOn,
  kWatch,
  kEnv,
  kEnvFile,
  kExport,
  kNoExport,
  kConnectTimeout,
  kFanout,
  kSshOption,
  kLogDir,
  kLogMax,
  kKeepRuns,
  kFold,
  kColor,
  kJson,
  kQuiet,
  kVerbose,
  kAll,
  kMan,
  kMarkdown,
  kHelp,
};

enum class ValueKind {
  kNone,
  kText,
  kPath,
  kDirectory,
  kInt,         // [min, max]
  kDuration,    // [min, max] in milliseconds
  kChoice,      // one of `choices`
  kNodes,       // N or MIN:MAX in [min, max]
  kRanks,       // one of `choices` or a number in [min, max]
  kAssignment,  // NAME=VALUE, NAME as in env_file.h
  kSshOption,   // Name=Value, as after ssh -o
  kGpuWish,     // auto, N in [min, max], or HOST:INDEX,...[@...]
  kBytes,       // "24GiB" (base::parse_bytes)
  kGlob,        // a pattern of base/glob.h
  kContainer,   // [HOST,...=]KIND:NAME, as in container_wish.h
};

enum class Section { kHosts, kRanks, kEnvironment, kConnection, kOutput, kOther };

// The value of a flag, as its row says it.
struct Takes {
  ValueKind kind = ValueKind::kNone;
  std::string_view metavar = {};
  std::string_view choices = {};  // separated by '|'
  int64_t min = 0, max = 0;
  bool repeatable = false;
  bool optional_value = false;  // the value, if any, is attached: --sync=DIR. Without: an empty value

  static constexpr Takes text(std::string_view metavar) { return {ValueKind::kText, metavar}; }
  static constexpr Takes path(std::string_view metavar) { return {ValueKind::kPath, metavar}; }
  static constexpr Takes directory(std::string_view metavar) { return {ValueKind::kDirectory, metavar}; }
  static constexpr Takes number(std::string_view metavar, int64_t min, int64_t max) { return {ValueKind::kInt, metavar, {}, min, max}; }
  static constexpr Takes duration(int64_t min, int64_t max) { return {ValueKind::kDuration, "DURATION", {}, min, max}; }
  static constexpr Takes choice(std::string_view choices) { return {ValueKind::kChoice, choices, choices}; }
  static constexpr Takes bytes(int64_t min = 0) { return {ValueKind::kBytes, "SIZE", {}, min}; }
  constexpr Takes repeatedly() const {
    Takes value = *this;
    value.repeatable = true;
    return value;
  }
  constexpr Takes or_nothing() const {
    Takes value = *this;
    value.optional_value = true;
    return value;
  }
};

struct FlagRow : Takes {
  Flag flag;
  char short_name = 0;            // 0: none
  std::string_view name;          // without "--"; dashes (an underscore typed by the user counts as a dash)
  std::string_view aliases = {};  // further long names, separated by '|': what torchrun and DeepSpeed users type
  uint32_t verbs = 0;             // bits 1 << Verb
  Section section = Section::kOther;
  words::Text help;  // one or two sentences, first letter small, no full stop at the end

  // spelling: "hosts", "hosts|host", "-H hosts|host".
  constexpr FlagRow(Flag which, std::string_view spelling, Takes value, uint32_t of_verbs, Section in, words::Text text)
      : Takes(value), flag(which), verbs(of_verbs), section(in), help(text) {
    if (spelling.starts_with('-')) short_name = spelling[1], spelling.remove_prefix(3);
    name = spelling.substr(0, spelling.find('|'));
    if (name.size() < spelling.size()) aliases = spelling.substr(name.size() + 1);
  }
  constexpr FlagRow(Flag which, std::string_view spelling, uint32_t of_verbs, Section in, words::Text text)
      : FlagRow(which, spelling, Takes{}, of_verbs, in, text) {}
};

// Whether the next word is its value.
constexpr bool takes_word(const FlagRow& flag) { return flag.kind != ValueKind::kNone && !flag.optional_value; }
constexpr uint32_t bit(Verb verb) { return 1u << static_cast<int>(verb); }
std::span<const VerbRow> verb_table();
std::span<const FlagRow> flag_table();  // in the order of help
const VerbRow& row(Verb verb);
const FlagRow& row(Flag flag);
const VerbRow* find_verb(std::string_view name);
// By long name or alias, for this verb; '_' in `name` counts as '-'. Null if there is none.
const FlagRow* find_flag(Verb verb, std::string_view name);
const FlagRow* find_flag(Verb verb, char short_name);
words::Text title(Section section);
// Whether the option can be set in a project file, under its long name: those of run, except the ones that belong to a single command.
bool is_project_key(const FlagRow& flag);

}  // namespace phalanx::cli
