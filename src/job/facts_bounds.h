// Facts and samples of a host are JSON: what they may hold is bounded before structs are made of it, which are larger than their text.
#pragma once

#include "base/json.h"
#include "machine/facts.h"

namespace phalanx::job {

// A document of a host: lists, objects and strings of sensible size, and no control bytes in any string (they become '?'; lines and tabs
// stay), since tables of hosts show them. Error (kInternal) says what is too much.
base::Result<base::Json> parse_from_host(const std::string& text);
// parse_from_host, then the meaning: numbers of GPUs and CPUs, clocks.
base::Result<machine::Facts> facts_from_host(const std::string& text);

}  // namespace phalanx::job
