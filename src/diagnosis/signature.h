// The signatures of logs: one row per line of text that tells something about how a run failed. A row says which code the line stands for,
// what part it plays, and by which words it is known. Pure data; a unit test holds each row against its two example lines.
//
// Patterns are RE2's (no backtracking: linear in the line), searched for anywhere in a line without its tags (diagnosis/log_line.h), as
// bytes. Named groups carry evidence: rank, local, host, pid, exit, address, seq, op, in, out, timeout, enqueued, completed, group, nranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace diagnosis {

enum class Role : uint8_t {
  kRoot,     // can be the first cause; the earliest of them is the verdict
  kSymptom,  // says that something broke, and is the verdict only where no root is found: a watchdog's timeout, a signal
  kCascade,  // follows from what broke elsewhere
  kBenign,   // looks like a fault and is none; whatever else matches on its line is not counted
  kContext,  // no fault: a fact such as the number of ranks
};

struct Signature {
  std::string_view code;  // of codes/
  Role role;
  std::string_view literal;  // in every line that matches, at least four bytes: what a first, fast pass looks for
  std::string_view pattern;
  std::string_view line;   // one that must match: as programs write it
  std::string_view other;  // one that must not: near it, or the help text in which others quote it
};

// One function per file signatures_<group>.cc.
std::span<const Signature> gpu_signatures();
std::span<const Signature> network_signatures();
std::span<const Signature> infiniband_signatures();
std::span<const Signature> nccl_signatures();
std::span<const Signature> rendezvous_signatures();
std::span<const Signature> launcher_signatures();
std::span<const Signature> software_signatures();
std::span<const Signature> storage_signatures();
std::span<const Signature> limits_signatures();
std::span<const Signature> data_signatures();
std::span<const Signature> torch_signatures();
std::span<const Signature> end_signatures();
std::span<const Signature> cascade_signatures();
std::span<const Signature> benign_signatures();

// All of them. Where two of the same role match one line, the earlier counts.
std::vector<const Signature*> signatures();

// The last line of a Python traceback that no row knows: its literal is empty, the scanner finds it by the lines above.
const Signature& traceback_signature();

}  // namespace diagnosis
