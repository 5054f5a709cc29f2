// The commands that pages and findings print, and what each does. A test goes through all of them and fails on one that is missing.
#pragma once

#include <span>
#include <string_view>

#include "base/language.h"
#include "doctor/commands.h"

namespace phalanx::doctor {

struct KnownCommand {
  std::string_view words;  // the program, then arguments that tell it from its other uses
  Effect effect;
  words::Text cost;  // of what destroys
};

std::span<const KnownCommand> known_commands();

}  // namespace phalanx::doctor
