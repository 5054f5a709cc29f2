// What stalls or slows down a run: the one result of every judge that looks at a running job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"

namespace phalanx::diagnosis {

struct Diagnosis {
  std::string code;          // of codes/runs or codes/checks
  std::vector<int> ranks{};  // that it names; may be empty
  std::optional<size_t> host{};
  doctor::Words evidence{};              // one sentence or more, without the name of the rank in front
  std::string fix{};                     // a command as printed; empty: see the code's page
  std::vector<doctor::Words> details{};  // further lines: where the ranks are
  std::vector<doctor::Words> missing{};  // evidence that would have told more
  bool stack_seen = false;               // a rank that it names has shown where it is: the Python hook, py-spy or gdb
  bool line_seen = false;                // or its line of Python is known, from those or from its memory
  bool certain() const { return code != "HANG-UNKNOWN"; }
};

}  // namespace phalanx::diagnosis
