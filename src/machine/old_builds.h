// Builds of Phalanx that lie in a cache (<cache>/<build id>/phalanx, docs/formats/frames.md) and that newer ones have replaced.
//
// Who uses a build says so by the time of its folder, hourly at most at a start and daily while it runs, so hosts that share a home
// directory see each other's use. A build is removed only if it was not used for long while another one was, and everything says that it is
// ours: a real folder of this user that only this user can write to, named like a build, with nothing in it but what deployment puts there.
// Whatever cannot be looked up means that it stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace phalanx::machine {

// All limits of what is kept of earlier builds.
struct BuildKeeping {
  size_t whatever_age = 5;       // the builds used last, which nothing removes
  size_t builds = 20;            // more than so many: `unused_crowded` is enough
  std::chrono::days unused{60};  // from its last use to the last use of any other
  std::chrono::days unused_crowded{7};
  bool from_now = false;   // count from now, although a wrong clock then makes builds old: somebody asked for the removal
  bool list_only = false;  // nothing is removed or written; `removed` hears of what would be
};

// build: removed, or problem: why not completely. Called before the removal, and again for a problem.
using BuildRemoved = std::function<void(const std::string& build, const std::string& problem)>;

// cache: the folder that holds the folders of builds. current: the build in use. wall_ns: now. Waits for the disk. Each removal also leaves
// a line in <cache>/removed.log.
void tend_builds(const std::string& cache, const std::string& current, const BuildKeeping& keeping, int64_t wall_ns,
                 const BuildRemoved& removed);

// Whether tend_builds() was called for this build within the last hour: then a start need not call it again. One stat() of the folder of
// the build. False if that cannot be known.
bool tended_lately(const std::string& folder, int64_t wall_ns);

}  // namespace phalanx::machine
