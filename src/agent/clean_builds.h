// `phalanx clean` on the machine it runs on: builds of the agent that deployment has left in caches, and that nobody has used for two days.
#pragma once

#include <functional>
#include <string>

namespace phalanx::agent {

// path: the folder of an old build. problem: why it could not be removed completely; told after the build itself.
using OldBuild = std::function<void(const std::string& path, const std::string& problem)>;

// build: of the agent in use, which stays. Looks into $XDG_CACHE_HOME/phalanx or ~/.cache/phalanx, and into the cache that this program
// itself lies in. remove: otherwise nothing is changed.
void clean_builds(const std::string& build, bool remove, const OldBuild& found);

// The same for what --sync has copied to this machine (sync/store.h): copies that no run has used for two days, and contents that no copy
// has.
void clean_copies(bool remove, const OldBuild& found);

// Both for a launcher elsewhere (`phalanx agent clean [--yes]`): prints one line per thing, "PATH" or "PATH<tab>PROBLEM". Exit code: 1
// if there was a problem.
int print_clean_builds(const std::string& build, bool remove);

}  // namespace phalanx::agent
