// From what logs say to one verdict: what broke first, where, and what only followed. Pure.
//
// Trouble after which work went on was survived and is at most a note (diagnosis/logs/survived.h). Of the rest
// the earliest root candidate wins over symptoms, and symptoms over cascades (diagnosis/logs/signature.h). Of collectives that timed out
// the sequence numbers are compared over all ranks (diagnosis/hang/watchdog.h). Where only consequences were found the verdict is
// LOG-ROOT-ELSEWHERE and says whose logs are missing. Lines of two files are put in order by their times where both have one; else by how
// near to a cause their kind is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "codes/slots.h"
#include "diagnosis/logs/scan.h"
#include "doctor/finding.h"

namespace phalanx::diagnosis {

struct LogEvidence {
  size_t file = 0;    // position in LogVerdict::files
  uint64_t line = 0;  // from 1
  std::string text;
  // Where an exception was raised, and in the user's own code: "torch/nn/functional.py functional.py:3479 (cross_entropy) train.py:42
  // (step)".
  std::string place{};
  std::string way{};  // all of its frames: "datasets/arrow_writer.py(write_table) …"
};

struct LogCause {
  std::string code;          // of codes/runs or codes/checks
  std::vector<int> ranks{};  // empty: not told, or not of single ranks
  int local_rank = -1;       // where the rank is not told
  std::string host{};        // empty: not told
  doctor::Words detail{};    // what is known beyond the code; may be empty
  std::vector<LogEvidence> evidence{};
  std::vector<doctor::Words> advice{};  // on the very message, where it is known (codes/advice.h)
  codes::Observed observed{};           // what the lines named of what the page's commands need
};

struct LogCascade {
  std::string code;
  uint64_t count = 0;
  std::vector<int> ranks{};
  LogEvidence first{};
};

// A further part of the report, made by others from the same files (NCCL's topology, a flight recorder's comparison).
struct LogSection {
  doctor::Words title;
  std::vector<doctor::Words> lines;
};

struct LogVerdict {
  std::optional<LogCause> cause{};     // none: nothing in the logs tells of a failure
  std::vector<LogCause> others{};      // further candidates, the likeliest first
  std::vector<LogCascade> cascades{};  // what followed, folded
  std::vector<LogFile> files{};
  std::vector<int> ranks{};    // whose lines were seen
  std::vector<int> missing{};  // of the number of ranks the logs tell; empty where they tell none
  int world = 0;
  std::vector<LogSection> sections{};
  std::vector<uint64_t> last_work{};  // per file: the last line in which work was counted; 0: none
};

// Codes that say only that something failed, and not what: one of them is the verdict only where no other code is found.
bool is_generic(std::string_view code);

LogVerdict judge_logs(LogFacts facts);

}  // namespace phalanx::diagnosis
