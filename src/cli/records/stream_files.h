// For scripts that read torchrun's log files: attempt_<n>/<rank>/stdout.log, stderr.log and error.json in the directory of the run, as
// torchrun has them below <log-dir>/<id>_…/ (torch/distributed/elastic/multiprocessing/api.py, LogsSpecs). The numbers of the folders
// are ranks: on one host they are the local ranks that torchrun takes; with several hosts all files lie here and not on the hosts.
#pragma once

#include <string>
#include <vector>

#include "logs/runs/files.h"
#include "wire/messages.h"

namespace phalanx::cli {

class StreamFiles {
 public:
  // folder: of the run. most_bytes: of each file; 0: no bound. files outlives this.
  StreamFiles(logs::Files& files, std::string folder, uint64_t most_bytes)
      : files_(files), folder_(std::move(folder)), most_bytes_(most_bytes) {}
  void started(int attempt, size_t ranks);
  void output(const wire::Output& output);  // whole lines
  void exited(const wire::Exited& exited);

 private:
  std::string folder_of(uint32_t rank) const;

  logs::Files& files_;
  std::string folder_;
  uint64_t most_bytes_;
  int attempt_ = 0;
  std::vector<std::pair<logs::FileId, logs::FileId>> ranks_;  // of standard output and standard error
};

}  // namespace phalanx::cli
