// What the tests of a run's view share: an environment, and the progress of a rank.
#pragma once

#include <map>
#include <string>

#include "view/terminal/terminal.h"

namespace phalanx::view {

inline Environment environment(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    auto it = values.find(name);
    return it == values.end() ? std::string() : it->second;
  };
}

inline const Environment kUtf8 = environment({{"TERM", "xterm-256color"}, {"LANG", "C.UTF-8"}});

inline wire::RankProgress step(int64_t n, int64_t total = 1000) {
  wire::RankProgress progress;
  progress.step = n;
  progress.total = total;
  progress.phase = "train";
  return progress;
}

}  // namespace phalanx::view
