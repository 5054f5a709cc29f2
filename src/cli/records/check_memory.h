// Where a run finds what the checks of the run before it found (job/remembered.h), and leaves what its own have: one small file per job and
// set of hosts, in a folder of the cache that only the user can enter.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "job/job.h"
#include "job/remembered.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

// $XDG_CACHE_HOME/phalanx or ~/.cache/phalanx, whether it is there or not. Empty: neither variable names a folder.
std::string cache_folder();

class CheckMemory {
 public:
  // The memory of this job: its command, folder, variables and options, on these hosts, by this build of phalanx. Another job's is another
  // file. most_age: older results are not used; 0: nothing is used and nothing is kept.
  CheckMemory(const job::Job& job, std::chrono::milliseconds most_age);

  // None: there is none, it is too old, from another boot of this machine, or cannot be read.
  std::shared_ptr<job::Remembered> load() const;
  // After a run: keeps what its checks found, or forgets what was kept if they or the run speak against it. A cache: errors are ignored.
  void keep(const job::State& state, const job::Verdict& verdict) const;

 private:
  std::string path_;  // empty: no memory
  std::chrono::milliseconds most_age_;
};

}  // namespace phalanx::cli
