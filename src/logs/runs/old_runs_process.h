// remove_old_runs() in a process of its own (phalanx-clean): a slow disk with many old runs holds up neither the start of a run nor its
// supervisor. It announces every removal and waits for the launcher's word, so that none is made which was not reported; when the launcher
// has gone it makes no further one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "logs/runs/old_runs.h"
#include "os/fd.h"
#include "os/loop.h"

namespace phalanx::logs {

class OldRunsProcess {
 public:
  // As of Removing; called from the loop. The removal is made after it has returned.
  using Heard = std::function<void(const std::string& id, const std::string& why, const std::string& problem)>;

  // The loop must outlive it, and reaps the process. base: absolute.
  static base::Result<std::unique_ptr<OldRunsProcess>> start(os::Loop& loop, const std::string& base, const std::string& current,
                                                             const Keeping& keeping, Heard heard);
  ~OldRunsProcess();
  OldRunsProcess(const OldRunsProcess&) = delete;
  OldRunsProcess& operator=(const OldRunsProcess&) = delete;

  bool over() const { return watch_ == 0; }  // the process has ended

 private:
  OldRunsProcess(os::Loop& loop, os::Fd socket, Heard heard) : loop_(loop), socket_(std::move(socket)), heard_(std::move(heard)) {}
  void hear();
  void close();

  os::Loop& loop_;
  os::Fd socket_;
  Heard heard_;
  os::WatchId watch_ = 0;
  std::string half_;  // a line without its end
};

}  // namespace phalanx::logs
