// What a training program tells the launcher about its own progress.
//
// A rank finds the number of an inherited, writable descriptor in PHALANX_EVENT_FD and writes one JSON object per line
// to it, at most 4 KiB each, in one write(2):
//   {"v":1,"type":"progress","step":120,"total":1000,"loss":2.31,"tokens_per_s":15300.5,"samples_per_s":31.2,"phase":"train"}
// Every field but "v" and "type" may be missing. Unknown keys and types are ignored, a bad line is dropped and
// counted: a rank can never harm the launcher through it. The format is described in docs/formats/rank-events.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::wire {

inline constexpr const char* kEventFdVariable = "PHALANX_EVENT_FD";
inline constexpr size_t kMaxRankEventBytes = 4096;

struct RankProgress {
  std::optional<int64_t> step;          // steps done
  std::optional<int64_t> total;         // steps planned
  std::optional<double> loss;           // last training loss
  std::optional<double> tokens_per_s;   // of this rank's whole job, as the program counts it
  std::optional<double> samples_per_s;  // the same, where it counts samples
  std::string phase;                    // "load", "train", "eval", "save", "done"; may be empty
};

std::string encode(const RankProgress& progress);                       // one line, newline included
base::Result<RankProgress> parse_rank_progress(std::string_view line);  // newline optional

}  // namespace phalanx::wire
