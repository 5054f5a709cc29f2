// A private folder of this run on this host, for what ranks leave for us (error files). Removed at the end.
#pragma once

#include <optional>
#include <string>

namespace agent {

class Scratch {
 public:
  // $TMPDIR or /tmp, then /dev/shm: "phalanx-run-<id>-XXXXXX", 0700. Empty if neither can be written: error files are then not offered.
  static std::optional<Scratch> create(const std::string& run_id);
  const std::string& path() const { return path_; }
  void remove();  // two levels: <path>/<local rank>/<file>

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace agent
