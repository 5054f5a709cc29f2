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
  explicit StaleBytecode(const std::vector<Change>& changes);
  // path: "lib/x/__pycache__/name.cpython-311.opt-1.pyc".
  bool has(std::string_view path) const;

 private:
  std::set<std::string, std::less<>> stems_;  // "lib/x/__pycache__/name."
};

}  // namespace phalanx::envmove
