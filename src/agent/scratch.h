// A private folder of this run on this host, for what ranks leave for us (error files). Removed at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"

namespace phalanx::agent {

class Scratch {
 public:
  // $TMPDIR or /tmp, then /dev/shm: "phalanx-run-<id>-XXXXXX", 0700. Empty if neither can be written: error files are then not offered.
  static std::optional<Scratch> create(const std::string& run_id);
  const std::string& path() const { return path_; }
  void remove();  // two levels: <path>/<local rank>/<file>

 private:
  Scratch(std::string path, os::Fd held) : path_(std::move(path)), held_(std::move(held)) {}
  std::string path_;
  os::Fd held_;  // by this others know an agent of the run (machine/ranks/run_processes.h)
};

// What an agent that was killed has left: the folder of this name, if it is a folder of a run, ours, and no link.
void remove_scratch(const std::string& path);
// A file that a program was to leave there. "" if it is none, or larger: a program may as well have left a FIFO, which would hold up who
// opens it, or a link.
std::string read_left_file(const std::string& path, size_t most_bytes);
// Those of a run that agents have left where create() makes them, ours only.
std::vector<std::string> scratches_of(const std::string& run_id);

}  // namespace phalanx::agent
