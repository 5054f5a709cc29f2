// A cause made of what was found in logs: the event or the comparison that names it, with every further line that says the same. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "diagnosis/hang/watchdog.h"
#include "diagnosis/logs/scan.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {

inline constexpr size_t kMostEvidence = 6;  // lines of one cause

// An exception without a signature of its own.
bool is_plain(const LogEvent& event);
// What the signature's group of this name has matched; may be empty.
std::string captured(const LogEvent& event, const char* name);
LogEvidence evidence_of(const LogEvent& event);

LogCause full_cause(const LogFacts& facts, const LogEvent& event);
LogCause cause_of(const LogFacts& facts, const WatchdogVerdict& verdict);

}  // namespace phalanx::diagnosis
