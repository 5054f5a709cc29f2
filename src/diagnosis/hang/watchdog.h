// The arithmetic of torch's watchdogs: from "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=…" and "last enqueued NCCL work:
// E, last completed NCCL work: C" of several ranks, who never came to a collective, or came with another one. Pure.
//
//   E == C      the rank had nothing left to do: it never entered what the others wait in
//   E == C + 1  it waits; E > C + 1: it waits, with more behind it
//   started     time of the watchdog's line less Timeout(ms)
//
// Format: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, since 1.13 (without "enqueued") and 2.3 (with it).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/hang/records.h"
#include "diagnosis/logs/scan.h"

namespace phalanx::diagnosis {

struct WatchdogVerdict {
  Standstill standstill;       // code: HANG-NEVER-ENTERED, HANG-MISMATCH, HANG-TRANSPORT or HANG-TIMEOUT (not decidable from these logs)
  std::vector<size_t> events;  // positions in LogFacts::events: the evidence
};

// Nothing if no watchdog spoke. missing: ranks without any line in the logs.
std::optional<WatchdogVerdict> compare_watchdogs(const LogFacts& facts, const std::vector<int>& missing);

}  // namespace phalanx::diagnosis
