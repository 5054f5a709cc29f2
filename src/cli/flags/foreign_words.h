// Verbs and options that users of other launchers type, and what leads to the same here: codes/values/foreign-verbs.tsv and
// foreign-options.tsv, for torchrun, accelerate, DeepSpeed, mpirun, pdsh, Slurm, docker and kubectl.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/flags/flags.h"

namespace phalanx::cli {

struct ForeignWord {
  std::string_view tools;   // whose word it is: "docker, kubectl"
  std::string_view word;    // a verb, or an option without its dashes, "publish|p"; of an option '-' stands for '_' as well
  std::string_view advice;  // of a verb the command to type; of an option an imperative
  uint32_t verbs = 0;       // of an option: bits of the verbs at which it means this; 0: of any
};

std::span<const ForeignWord> foreign_verbs();
std::span<const ForeignWord> foreign_options();           // those of any verb
std::span<const ForeignWord> foreign_options_of_verbs();  // those that mean something at some verbs only; they are looked up first

// "phalanx stop RUN" for "kill".
std::optional<std::string> advice_for_foreign_verb(std::string_view word);
// name: without its dashes. Never names an option that the verb does not have.
std::optional<std::string> advice_for_foreign_option(Verb verb, std::string_view name);

// What docker's users mean by a short option that is another one here: `-e FOO=1` is --exclude, `-it` is --include t, and after
// `-v` stands no volume. Nothing for a value that may be meant.
struct ForeignValue {
  std::string message;  // "-e FOO=1: a variable, not a host"
  std::string advice;   // "write --env FOO=1; -e is --exclude"
};
std::optional<ForeignValue> advice_for_foreign_value(const FlagRow& flag, std::string_view typed, std::string_view value);

}  // namespace phalanx::cli
