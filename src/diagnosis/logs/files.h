// Log files as people have them: plain or gzipped, standard input, a folder of them, the folder of a run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "diagnosis/logs/scan.h"

namespace phalanx::diagnosis {

inline constexpr size_t kMostLogFiles = 4096;

// The files an operand stands for, with what their names tell of rank and host:
//   "-"             standard input
//   a file          itself
//   a run's folder  ranks/*.log, in the order of ranks, with the hosts of run.json; events.jsonl
//   another folder  *.log *.txt *.out *.err *.gz, stdout, stderr, and torchrun's attempt_N/R/*, four levels deep, sorted
// Error (kConfig): nothing there, or none of these in it, or more than kMostLogFiles.
base::Result<std::vector<LogFile>> find_logs(const std::string& operand);

// Reads one file into the scan, in pieces; gzip is known by its first bytes, any number of members. damaged: the gzip data ended early or
// is broken, and what came before was read. Error (kConfig): cannot be opened or read.
struct ReadLog {
  bool damaged = false;
};
base::Result<ReadLog> read_log(LogScan& scan, const LogFile& file);

}  // namespace phalanx::diagnosis
