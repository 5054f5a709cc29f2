// A private folder of this run on this host, for what ranks leave for us (error files). Removed at the end.
#pragma once

#include <optional>
#include <string>

#include "os/fd.h"

namespace agent {

class Scratch {
 public:
  // $TMPDIR or /tmp, then /dev/shm: "phalanx-run-<id>-XXXXXX", 0700. Empty if neither can be written: error files are then not offered.
  static std::optional<Scratch> create(const std::string& run_id);
  const std::string& path() const { return path_; }
  void remove();  // two levels: <path>/<local rank>/<file>

 private:
  Scratch(std::string path, os::Fd held) : path_(std::move(path)), held_(std::move(held)) {}
  std::string path_;
  os::Fd held_;  // by this others know an agent of the run (host/run_processes.h)
};

}  // namespace agent
