// Every command that pages advise, sorted by what it does: the last part of docs/codes.md.
#pragma once

#include <string>

#include "base/language.h"

namespace view {

std::string commands_markdown(base::Language language);

}  // namespace view
