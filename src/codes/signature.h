// The signatures of logs: one per line of text that tells something about how a run failed. It says which code the line stands for, what
// part it plays, and by which words it is known. The rows are data (codes/signatures/*.yaml); a unit test holds each against its two
// example lines.
//
// Patterns are RE2's (no backtracking: linear in the line), searched for anywhere in a line without its tags (diagnosis/logs/line.h), as
// bytes. Named groups carry evidence: rank, local, host, pid, exit, address, seq, op, in, out, timeout, enqueued, completed, group, nranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace phalanx::codes {

enum class Role : uint8_t {
  kRoot,     // can be the first cause; the earliest of them is the verdict
  kSymptom,  // says that something broke, and is the verdict only where no root is found: a watchdog's timeout, a signal
  kCascade,  // follows from what broke elsewhere
  kBenign,   // looks like a fault and is none; whatever else matches on its line is not counted
  kContext,  // no fault: a fact such as the number of ranks
  kSuspect,  // no fault by itself; can explain one that does not say why: a timeout, a file that is not there
};

struct Signature {
  std::string_view code;  // of codes/
  Role role;
  std::string_view literal;  // in every line that matches, at least four bytes: what a first, fast pass looks for
  std::string_view pattern;
  std::string_view line;  // one that must match: as programs write it
};

// All of them, file by file. Where two of the same role match one line, the earlier counts.
std::span<const Signature> signatures();

// For each of them, in this order, a line that must not match: near its own, or the help text in which others quote it. For tests: a
// program that does not call this does not carry them.
std::vector<std::string_view> signature_others();

}  // namespace phalanx::codes
