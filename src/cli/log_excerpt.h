// What of a long log goes into a report: its beginning and its end.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace cli {

// The file, with the one before it (path + ".1", logs/files.h) in front where there is one: the two are cut as one text, so that nothing
// is cut apart where one ends and the other begins. The whole if it has at most `most` bytes; else the first quarter of `most` and the last
// three quarters, with a line between them that says how much is missing. Only whole lines, and no part of a PEM block: of a secret that is
// cut apart from its name, or cut short, no piece could be recognized. Empty where no regular file lies.
base::Result<std::string> excerpt_of(const std::string& path, size_t most);

}  // namespace cli
