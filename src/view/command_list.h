// Every command that pages advise, sorted by what it does: docs/commands.md.
#pragma once

#include <string>

#include "base/language.h"

namespace phalanx::view {

std::string commands_markdown(base::Language language);

}  // namespace phalanx::view
