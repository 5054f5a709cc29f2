// The command line, read strictly: words → Invocation. Every value has been checked against its row of the table.
//
// "--flag value", "--flag=value", "-f value", "-fvalue", "-qv". "--" ends the flags. For run and plan the first word that
// is not a flag ends them too, so the user's command keeps its own flags without "--". A flag given twice, a missing
// value, an unknown flag (with the nearest known one), a torchrun or DeepSpeed flag that has no meaning here (with what to
// do instead) are errors of kind kUsage.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/flags/flags.h"

namespace phalanx::cli {

struct GivenFlag {
  const FlagRow* row;
  std::string typed;  // "--nproc_per_node", as the user wrote it; "phalanx.yaml:3: nproc-per-node"
  std::string value;  // empty for a flag without value
  int line = 0;       // in the project file; 0: of the command line
};

struct Invocation {
  Verb verb = Verb::kHelp;
  std::vector<GivenFlag> flags;          // in the order given
  std::vector<std::string> operands;     // the command, the config file, the topic of help …
  std::vector<std::string> command;      // of verbs whose operands are not the command (Operands::kSplit): what follows "--"
  std::vector<const FlagRow*> off = {};  // "--python-hook=false": switches that the project file cannot turn on
  std::vector<std::string> unset = {};   // "phalanx.yaml:7:3: API_KEY": variables of it without a value here; for plan and check alone
  std::string project = {};              // the project file that flags came from (cli/project/project.h); empty: none

  bool has(Flag flag) const;
  std::optional<std::string> value(Flag flag) const;
  std::vector<std::string> values(Flag flag) const;
};

// `args` without argv[0]. "VERB --help", "--help" and no word at all become the verb help with the verb as operand; "--version" becomes
// the verb version.
base::Result<Invocation> parse_command_line(std::span<const std::string> args);

}  // namespace phalanx::cli
