// Logs of any size, read once from front to end: what they say is kept as events, one per line that a signature knows. Pure but for time.
//
// How it is fast: blocks are searched for the signatures' literals (diagnosis/logs/literal_search.h); only a line with a hit is looked at,
// its tags are taken off, and only the patterns whose literal was hit are tried. Memory does not grow with the log: of a signature's events
// of one source kKeptEach are kept, the others counted. Whether work went on is looked for at the end of each file (progress.h).
//
// Lines end with "\n", "\r\n" or "\r" (a progress bar's states are lines of their own, with the number of the line they stand in).
// Escape sequences are taken out. A line longer than kLongestLine is looked at up to there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/logs/bug_watch.h"
#include "diagnosis/logs/progress.h"
#include "diagnosis/logs/signature.h"
#include "logs/nccl/topology.h"

namespace phalanx::logs {
class NcclLog;
}

namespace phalanx::diagnosis {

inline constexpr size_t kLongestLine = 64 << 10;
inline constexpr size_t kKeptEach = 4;         // events kept of one signature and source, in a file: the first, and a late one
inline constexpr uint64_t kLate = 50;          // lines by which a later one has to come after the last kept to take its place
inline constexpr size_t kMostUnexplained = 4;  // of a file
inline constexpr size_t kMostEvents = 20'000;  // kept in all
inline constexpr size_t kEventBytes = 600;     // of a line, in an event

struct LogEvent {
  const Signature* signature = nullptr;
  size_t file = 0;     // position among the files begun
  uint64_t line = 0;   // from 1
  uint64_t place = 0;  // rises from line to line: the order of reading
  std::string text;    // without tags
  int rank = -1, local_rank = -1;
  std::string host;
  std::string source;           // equal for lines of one writer
  std::optional<int64_t> time;  // as in LogLine; of the line, or of one shortly before it
  std::map<std::string, std::string> captures;
  uint64_t traceback_line = 0;  // where the traceback began whose last line this is; 0: none
  std::string module;           // the file of its innermost frame below the installed packages
  std::string way;              // all of its frames: Traceback::way()
  std::string where;            // its innermost frame outside installed packages: "train.py:42 (step)"
  std::string innermost;        // its innermost frame, where that is another: "functional.py:3479 (cross_entropy)"

  std::string raised_at() const;  // the last three, as far as they are known
};

struct LogCount {
  const Signature* signature = nullptr;
  uint64_t count = 0;
  std::set<int> ranks;
};

struct LogFile {
  std::string name;
  int rank = -1, local_rank = -1;  // of every line that does not say
  std::string host;
  uint64_t lines = 0, bytes = 0, cut = 0;  // cut: lines longer than kLongestLine
  bool found = false;                      // in a folder, not named by the user: only a regular file is read
};

struct LogFacts {
  std::vector<LogFile> files;
  std::vector<LogEvent> events;       // in the order of reading
  std::vector<LogCount> counts;       // per signature, with what was not kept
  std::set<int> ranks;                // whose lines were seen
  int world = 0;                      // number of ranks, where a line says; 0: none does
  std::vector<LogEvent> unexplained;  // NCCL's warnings, and errors of the catalogue, that no signature knows: the last few of each file
  std::vector<ProgressMark> marks;    // near the ends of the files
  BugSigns bugs;                      // what the logs show of known bugs
  logs::NcclTopology nccl;            // what NCCL's own lines tell; numbers of lines as nccl_line()
};

// The number of a line for logs::NcclLog, which knows no files.
inline uint64_t nccl_line(size_t file, uint64_t line) { return uint64_t{file} << 40 | (line & ((uint64_t{1} << 40) - 1)); }

class LogScan {
 public:
  LogScan();
  ~LogScan();
  LogScan(LogScan&&) noexcept;

  void begin_file(LogFile file);      // its counters at 0
  void feed(std::string_view bytes);  // less than 4 GiB
  void end_file();

  // Afterwards the scan is as new, but for patterns that are compiled already.
  LogFacts finish();

 private:
  class Matcher;
  struct File;
  std::unique_ptr<Matcher> matcher_;
  std::unique_ptr<logs::NcclLog> nccl_;
  std::unique_ptr<File> file_;
  LogFacts facts_;
};

}  // namespace phalanx::diagnosis
