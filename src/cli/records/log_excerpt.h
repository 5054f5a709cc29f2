// What of a long log goes into a report: its beginning and its end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::cli {

// The file `name` of a run, with the one before it (name + ".1", logs/runs/files.h) in front where there is one: the two are cut as one
// text, so that nothing is cut apart where one ends and the other begins. The whole if it has at most `most` bytes; else the first quarter
// of `most` and the last three quarters, with a line between them that says how much is missing. Only whole lines, and no part of a PEM
// block: of a secret that is cut apart from its name, or cut short, no piece could be recognized. Empty where no regular file lies, or
// where it is reached through a link.
base::Result<std::string> excerpt_of(const std::string& run_folder, std::string_view name, size_t most);

}  // namespace phalanx::cli
