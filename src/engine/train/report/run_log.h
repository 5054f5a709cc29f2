// <out>/log.jsonl: one JSON object a line, each beginning with its "step". Steps never fall from line to line.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "engine/train/report/loss_picture.h"
#include "os/fd.h"

namespace phalanx::engine::train {

class RunLog {
 public:
  RunLog() = default;  // takes no lines
  // Continues the file behind `step`, 0: anew. Lines of later steps will be written again, so they go; so does what is no whole line.
  static base::Result<RunLog> open(const std::string& folder, int64_t step);

  bool is_open() const { return file_.valid(); }
  const std::string& path() const { return path_; }
  base::Status append(const base::Json& line);  // whole, or not at all

 private:
  os::Fd file_;
  std::string path_;
};

// The losses of a log of any size: of a file beyond 64 MB only every second, third … line is read. Lines that are none of ours are
// passed over. Error: the file cannot be read.
base::Result<LossCurves> read_losses(const std::string& path);

}  // namespace phalanx::engine::train
