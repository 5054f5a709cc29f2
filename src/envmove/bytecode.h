// Compiled Python whose source was rewritten.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "envmove/rehome.h"

namespace phalanx::envmove {

// Python takes what it has compiled by the time and the size of the source, or without looking at it ("unchecked-hash"). A rewritten source
// keeps its time, and its size where the new place is as long as the old one: Python would go on with the old paths. Without it, Python
// compiles anew.
class StaleBytecode {
 public:
  explicit StaleBytecode(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      if (change.link || !change.path.ends_with(".py")) continue;
      const size_t slash = change.path.rfind('/') + 1;
      stems_.insert(change.path.substr(0, slash) + "__pycache__/" + change.path.substr(slash, change.path.size() - slash - 2));
    }
  }

  // path: "lib/x/__pycache__/name.cpython-311.opt-1.pyc".
  bool has(std::string_view path) const {
    const size_t slash = path.rfind('/');
    if (!path.ends_with(".pyc") || slash == std::string_view::npos) return false;
    return stems_.find(path.substr(0, path.find('.', slash) + 1)) != stems_.end();
  }

 private:
  std::set<std::string, std::less<>> stems_;  // "lib/x/__pycache__/name."
};

}  // namespace phalanx::envmove
