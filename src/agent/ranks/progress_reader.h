// The progress of a program that says nothing of it, read from a file that its framework writes (logs/progress_file.h). A child process
// looks at the file once per kPeriod and writes what it finds to the rank's pipe of events, as the rank itself could
// (wire/rank_event.h): the file may lie on a server that is gone, and the agent never waits for one.
//
// Only what the run itself writes counts. A file that was there before is read from its old end on, or, as a CSV, once it has changed. It
// must be a regular file of the user who runs the ranks; the file itself is never a symbolic link, and in a relative path no folder is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::agent {

inline constexpr const char* kProgressFileVariable = "PHALANX_PROGRESS_FILE";

class ProgressReader {
 public:
  static constexpr std::chrono::milliseconds kPeriod{500};
  static constexpr std::chrono::milliseconds kLastLook{200};  // once the rank has ended

  // `path`: "out/trainer_log.jsonl", "lightning_logs/version_*/metrics.csv" (one folder may hold a `*`: the file in the last of the folders
  // that match and change), relative to `folder` or absolute. By its ending: .jsonl or .csv. `events` is inherited. Error kUsage: another.
  static base::Result<std::unique_ptr<ProgressReader>> start(const std::string& folder, const std::string& path, int events);
  ~ProgressReader();

  // One more look, and the end of the child; it is waited for at most kLastLook.
  void finish();
  // Of the child, which is no process that the ranks have left; 0: it has ended.
  pid_t group() const { return pid_; }
  void reaped() { pid_ = 0; }

 private:
  ProgressReader(pid_t pid, os::Fd control) : pid_(pid), control_(std::move(control)) {}
  pid_t pid_;
  os::Fd control_;  // closed: the child looks once more and ends
};

}  // namespace phalanx::agent
