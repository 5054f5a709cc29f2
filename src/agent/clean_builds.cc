#include "agent/clean_builds.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "machine/old_builds.h"
#include "os/clock.h"
#include "os/files.h"
#include "sync/store.h"

namespace phalanx::agent {
namespace {

// A build that is in use says so once a day (machine/old_builds.h).
constexpr std::chrono::days kUnused{2};

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<std::string> caches(const std::string& build) {
  std::vector<std::string> folders;
  const std::string home = os::environment_value("HOME");
  const std::string cache = os::environment_value("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  if (cache.starts_with("/")) folders.push_back(cache + "/phalanx");
  const std::string own = parent_of(os::self_executable());
  if (own.ends_with("/" + build) && std::find(folders.begin(), folders.end(), parent_of(own)) == folders.end())
    folders.push_back(parent_of(own));
  return folders;
}

}  // namespace

void clean_builds(const std::string& build, bool remove, const OldBuild& found) {
  machine::BuildKeeping keeping;
  keeping.whatever_age = 0;
  keeping.unused = keeping.unused_crowded = kUnused;
  keeping.from_now = true;
  keeping.list_only = !remove;
  for (const std::string& cache : caches(build))
    machine::tend_builds(cache, build, keeping, os::wall_now_ns(),
                         [&](const std::string& old, const std::string& problem) { found(cache + "/" + old, problem); });
}

void clean_copies(bool remove, const OldBuild& found) {
  std::optional<sync::Store> store = sync::Store::open_existing(sync::store_root());
  if (!store) return;
  sync::CopyKeeping keeping;
  keeping.whatever_age = 0;
  keeping.unused_s = std::chrono::seconds(kUnused).count();
  keeping.list_only = !remove;
  store->tidy(keeping, os::wall_now_ns(), found);
}

int print_clean_builds(const std::string& build, bool remove) {
  int code = 0;
  auto print = [&](const std::string& path, const std::string& problem) {
    if (!problem.empty()) code = 1;
    std::printf("%s%s%s\n", path.c_str(), problem.empty() ? "" : "\t", problem.c_str());
  };
  clean_builds(build, remove, print);
  clean_copies(remove, print);
  return code;
}

}  // namespace phalanx::agent
