// Codes of the catalogue as words of the command line. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/accepted.h"

namespace phalanx::cli {

// As typed → as in the catalogue: upper case, '_' is '-'.
std::string to_code(std::string_view word);

// "NET-MTU,ib-" → {"NET-MTU", "IB-"}: codes, or the beginnings of codes. Error (kUsage): one that begins no code.
base::Result<std::vector<std::string>> codes_or_prefixes(const std::vector<std::string>& words);

// "FS-SHM-SMALL,FS-SHM-FULL", "NET-MTU@gpu[01-04],gpu07": findings to accept, the second on some hosts only. Error (kUsage): no code of a
// check, or a malformed list of hosts.
base::Result<std::vector<doctor::Acceptance>> acceptances(std::string_view text);

// Of what a check finds, then of what breaks a run.
std::vector<std::string_view> every_code();

// kUsage, with the codes that are most like the word.
base::Error unknown_code(std::string_view word);

}  // namespace phalanx::cli
