// Which message of the catalogue (codes/catalogue.h) a line is, so that it can be attributed to a part of some software where no
// signature knows what it means. Pure, except that the first call makes the tables (about 10 ms): only for lines that report trouble.
#pragma once

#include <string_view>

#include "codes/catalogue.h"
#include "diagnosis/logs/signature.h"

namespace phalanx::diagnosis {

// The message with the longest words that the line holds, among the sources that can have printed it: NCCL and its plugins after "NCCL
// WARN", PyTorch and Gloo if a C++ source is named, and for an exception the package of its innermost frame (module: the path below
// site-packages; empty: unknown). If nothing indicates the source, the words must be long. Null: none.
const codes::KnownMessage* known_message(std::string_view line, std::string_view module = {});

// The code that the message stands for, as a signature of no pattern; null: it has none.
const Signature* meaning_of(const codes::KnownMessage& message);

}  // namespace phalanx::diagnosis
