// Whether work went on: lines that count steps, epochs or batches, tell that ranks are connected, or that the training is over. What is
// followed by them did not end the run. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::diagnosis {

enum class ProgressKind : uint8_t {
  kWork,       // a step, an epoch, a saved checkpoint
  kPreparing,  // a bar of something loaded, downloaded or tokenized
  kConnected,  // NCCL's communicator or the rendezvous is complete
  kFinished,   // the training is over
};

struct Progress {
  ProgressKind kind = ProgressKind::kWork;
  uint64_t number = 0;  // differs from line to line while work goes on: of all counters of the line
};

// What a line without its tags tells; nothing: no progress. A line that speaks of a failure tells none, whatever it counts.
std::optional<Progress> read_progress(std::string_view text);

// A line with progress near the end of a file.
struct ProgressMark {
  Progress progress;
  size_t file = 0;
  uint64_t line = 0;   // from 1
  std::string source;  // as LogEvent's
};

inline constexpr size_t kProgressTail = 256 << 10;  // bytes at the end of a file in which progress is looked for
inline constexpr size_t kMarksEach = 8;             // of one writer and kind, with different numbers: the last

// The marks in the last lines of a file; first_line: the number of the first of these lines. A number that comes again is where it came
// first: bars are printed once more when they are closed.
std::vector<ProgressMark> marks_in(std::string_view tail, size_t file, uint64_t first_line);

}  // namespace phalanx::diagnosis
