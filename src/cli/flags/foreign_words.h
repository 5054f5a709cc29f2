// Verbs and options that users of other launchers type, and what leads to the same here. One table for torchrun, accelerate, DeepSpeed,
// mpirun, pdsh, Slurm, docker and kubectl.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/flags/flags.h"

namespace phalanx::cli {

struct ForeignWord {
  std::string_view tools;   // whose word it is: "docker, kubectl"
  std::string_view word;    // a verb, or an option without its dashes; of an option '-' stands for '_' as well
  std::string_view advice;  // of a verb the command to type; of an option an imperative
};

std::span<const ForeignWord> foreign_verbs();
std::span<const ForeignWord> foreign_options();

// "phalanx stop RUN" for "kill".
std::optional<std::string> advice_for_foreign_verb(std::string_view word);
// name: without its dashes.
std::optional<std::string> advice_for_foreign_option(std::string_view name);

// `-e FOO=1` of docker, where -e is --exclude: "write --env FOO=1". Nothing for a value that may be meant.
std::optional<std::string> advice_for_foreign_value(const FlagRow& flag, std::string_view typed, std::string_view value);

}  // namespace phalanx::cli
