// The logs of a run's ranks, read as they grow and shown line by line with host and rank before each. A log that was turned
// (logs/runs/files.h) is read from the file before it on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "logs/runs/log_times.h"
#include "logs/runs/run_list.h"
#include "os/fd.h"
#include "view/terminal/line_prefix.h"
#include "view/terminal/output.h"

namespace phalanx::cli {

class LogReader {
 public:
  struct Options {
    std::optional<int64_t> tail;     // lines of each log to begin with; none: all
    std::optional<int64_t> attempt;  // only lines of this one; none: of all
    bool times = false;              // before each line, when it was printed
  };
  // hosts: per rank; wanted: per rank. The output must outlive the reader.
  LogReader(view::Output& out, std::string folder, std::vector<std::string> hosts, std::vector<bool> wanted, view::Controls controls,
            Options options);

  // Shows what there is to the end of every log, rank by rank, waiting for our own reader. Half a line at the end of a log is kept for
  // the next call.
  void read();
  // That half line too.
  void finish();
  // The first rank some of whose lines have no recorded time.
  std::optional<int> rank_without_times() const;
  // Of the first log that could not be read the last time, with its path.
  std::optional<base::Error> trouble() const;
  bool stopped() const { return out_.closed(); }  // nobody reads what we print
  bool silent() const { return silent_; }         // no line was shown

 private:
  struct File {
    os::Fd fd;
    logs::LogTimes times;
    uint64_t shown = 0;  // bytes up to the next line that is shown
  };
  struct Log {
    int rank = 0;
    int64_t attempt = 0;  // of the line that comes next
    std::string prefix;
    std::vector<File> files;  // to be read one after the other; the last one grows
    std::string half;         // a line without its end
    bool untimed = false;     // a line was shown without its time
    std::optional<base::Error> trouble;
  };
  base::Result<std::optional<os::Fd>> open_file(const Log& log, const char* ending) const;
  File take(const Log& log, os::Fd file, const char* ending) const;
  std::string path_of(const Log& log, const char* ending) const;
  base::Status open(Log& log);
  base::Status follow_turn(Log& log);
  base::Status read(Log& log);
  void show(Log& log, std::string_view lines);
  void show_timed(Log& log, std::string_view lines);
  bool is_wanted(Log& log, std::string_view line) const;

  view::Output& out_;
  std::string folder_;
  view::Controls controls_;
  Options options_;
  std::vector<Log> logs_;
  bool silent_ = true;
};

}  // namespace phalanx::cli
