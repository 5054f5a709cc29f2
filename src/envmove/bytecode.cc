#include "envmove/bytecode.h"

namespace phalanx::envmove {

StaleBytecode::StaleBytecode(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.link || !change.path.ends_with(".py")) continue;
    const size_t slash = change.path.rfind('/') + 1;
    stems_.insert(change.path.substr(0, slash) + "__pycache__/" + change.path.substr(slash, change.path.size() - slash - 2));
  }
}

bool StaleBytecode::has(std::string_view path) const {
  const size_t slash = path.rfind('/');
  if (!path.ends_with(".pyc") || slash == std::string_view::npos) return false;
  const size_t dot = path.find('.', slash);
  return stems_.find(path.substr(0, dot + 1)) != stems_.end();
}

}  // namespace phalanx::envmove
