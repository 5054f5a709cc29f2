// What a log shows of known bugs (codes/known_bug.h): the words of their triggers, and the versions of software. A bug fits a log only if
// both are in it: all parts of its trigger, and no version of its component but affected ones. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codes/known_bug.h"

namespace phalanx::diagnosis {

struct BugSign {
  bool seen = false;
  size_t file = 0;
  uint64_t first = 0, last = 0;  // lines, from 1, of the file in which it was seen last
};

struct BugSigns {
  std::vector<BugSign> words;                                  // as bug_literals() has them
  std::map<std::string_view, std::set<std::string>> versions;  // component → "2.21.5", without what follows "+"
};

// What to look for in a log: parts of triggers, then words that a version follows.
std::span<const std::string_view> bug_literals();

// `literal`: position in bug_literals(); `rest`: the line after it.
void see_bug_literal(BugSigns& signs, size_t literal, std::string_view rest, size_t file, uint64_t line);

// As people write it: "NCCL" of "nccl".
std::string_view component_name(std::string_view component);

struct FittingBug {
  const codes::KnownBug* bug = nullptr;
  std::string version;  // in the log
};
// last_work: per file the last line in which work was counted; a bug whose trigger was seen only before was survived.
std::vector<FittingBug> fitting_bugs(const BugSigns& signs, std::span<const uint64_t> last_work);

}  // namespace phalanx::diagnosis
