// What ranks have reported of their progress, kept for curves: progress.jsonl in the run directory, one JSON object per line:
//   {"t":12.3,"rank":0,"step":120,"total":1000,"loss":2.31,"tokens_per_s":15300.5,"phase":"train"}
// t: seconds since the run began. Only what a rank has reported is there.
//
// Bounded: at most kMostPoints lines. When they are full every second point of each rank is forgotten and from then on only every
// second, fourth, … report of a rank is kept, so that a run of any length leaves a curve of even density.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "logs/runs/files.h"
#include "wire/rank_event.h"

namespace phalanx::logs {

struct ProgressPoint {
  double t = 0;
  int rank = 0;
  wire::RankProgress progress;
};
std::string encode_point(const ProgressPoint& point);  // one line, "\n" included

class ProgressLog {
 public:
  static constexpr size_t kMostPoints = 16'384;

  // The file is made with the first point. files must outlive it. most: for tests.
  ProgressLog(Files& files, std::string path, size_t most = kMostPoints) : files_(files), path_(std::move(path)), most_(most) {}

  void add(double t, int rank, const wire::RankProgress& progress);
  // The last reports, also those that were thinned out.
  void close();

 private:
  struct Rank {
    uint64_t seen = 0;
    ProgressPoint last;
    bool written = true;  // `last` is in the log
  };
  void keep(const ProgressPoint& point);
  void thin();
  void append(const std::string& text);

  Files& files_;
  std::string path_;
  size_t most_;
  std::optional<FileId> file_;
  std::vector<ProgressPoint> points_;
  std::vector<uint64_t> numbers_;  // of points_: which report of its rank it was
  std::vector<Rank> ranks_;
  uint64_t every_ = 1;
};

inline constexpr size_t kMaxProgressBytes = 16 << 20;
// What such a file holds; lines that make no sense are left out.
std::vector<ProgressPoint> read_progress(std::string_view text);

}  // namespace phalanx::logs
