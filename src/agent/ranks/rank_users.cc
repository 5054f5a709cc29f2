#include "agent/ranks/rank_users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "os/family.h"

namespace phalanx::agent {

bool RankUsers::runs_as(uid_t uid) {
  if (::geteuid() != 0) return false;
  os::Mono now = os::mono_now();
  std::erase_if(refused_, [&](const auto& entry) { return now - entry.second > kStands; });
  if (refused_.contains(uid)) return false;
  std::vector<os::ProcessInfo> family = os::descendants(::getpid());
  bool found = std::any_of(family.begin(), family.end(), [&](const os::ProcessInfo& process) {
    struct stat s{};
    return ::stat(fmt::format("/proc/{}", process.pid).c_str(), &s) == 0 && s.st_uid == uid;
  });
  if (!found) refused_.emplace(uid, now);
  return found;
}

}  // namespace phalanx::agent
