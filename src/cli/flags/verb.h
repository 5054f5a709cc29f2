// The verbs, each a row of the table in verb_table.cc.
#pragma once

#include <string_view>

#include "words/message.h"

namespace phalanx::cli {

enum class Verb {
  kRun,
  kPlan,
  kTrain,
  kSubmit,
  kCheck,
  kBench,
  kFit,
  kPs,
  kLogs,
  kAttach,
  kStop,
  kWait,
  kInspect,
  kExec,
  kPush,
  kClean,
  kEnv,
  kConfig,
  kInit,
  kWhy,
  kStacks,
  kReport,
  kExplain,
  kHelp,
  kCompletion,
  kVersion,
  kAgent
};

// How a verb reads the words that are not flags.
enum class Operands {
  kNone,     // there may be none
  kCommand,  // the first ends the flags: it and all after it are the user's command, untouched
  kMixed,    // they may stand between flags
  kSplit,    // they may stand between flags; what follows "--" is the user's command, untouched
  kRaw,      // everything after the verb is an operand, also what looks like a flag
};

struct VerbRow {
  Verb verb;
  std::string_view name;
  Operands operands;
  std::string_view usage;  // what follows the name in the usage line
  words::Text summary;
  words::Text description;
  std::string_view examples;  // one a line, each a whole command; may be empty
  bool hidden = false;        // users never type it: kept out of help and completions
};

}  // namespace phalanx::cli
