// An environment that lies elsewhere than its files say is made to fit its place. First a plan, which reads and changes nothing; then the
// plan is carried out. No file is written in place: conda and uv link theirs to caches that other environments use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "envmove/environment.h"
#include "envmove/rewrite.h"

namespace phalanx::envmove {

struct Change {
  std::string path;
  bool link = false;
  size_t hits = 0;
  std::string old_sha256, new_sha256;  // of a file
  uint64_t new_size = 0;
};
struct Problem {
  std::string path, text;
};

struct Plan {
  Move move;
  std::vector<Change> changes;
  std::vector<Problem> problems;       // with any of these nothing is changed, unless that is asked for
  std::vector<std::string> untouched;  // opaque files that hold an old prefix
  bool resumed = false;                // an earlier one was interrupted
};

// Called from several threads, in no order.
using Progress = std::function<void(size_t files_done, size_t files)>;

// The journal of an interrupted one lies in the environment; its old prefixes are added. Error: a file cannot be read.
base::Result<Plan> plan_rehome(const Environment& environment, Move move, const Progress& progress);

// Removes compiled Python of what it rewrites (bytecode.h). Keeps modes and times, and owners where that is allowed; names of one file stay
// names of one file. Corrects RECORD and conda's hashes of what was as recorded before. Can be interrupted at any point and called again
// with a new plan. Error: the first file that could not be written; the journal stays.
base::Status carry_out(const Environment& environment, const Plan& plan, const Progress& progress);

inline constexpr const char* kJournal = ".phalanx-rehome.json";
// Whether one was interrupted here.
base::Result<bool> was_interrupted(const std::string& root);

}  // namespace phalanx::envmove
