#include "agent/ranks/rank_group.h"

#include <algorithm>

#include <fmt/format.h>

#include "machine/own_cgroup.h"

namespace phalanx::agent {

using machine::OwnCgroup;

constexpr std::chrono::milliseconds kPatience{200};

os::KillOutcome kill_family(const std::string& cgroup, std::chrono::milliseconds most) {
  if (cgroup.empty()) return os::kill_descendants(most);
  os::KillOutcome outcome = os::kill_descendants(most * 2 / 3);
  if (outcome.left > 0 || OwnCgroup::look(cgroup) == OwnCgroup::Content::kPopulated) {
    OwnCgroup::kill(cgroup);
    os::KillOutcome rest = os::kill_descendants(most / 3);
    outcome.killed = std::max(outcome.killed, rest.killed);
    outcome.left = rest.left;
    outcome.unseen = std::move(rest.unseen);
    OwnCgroup::await_empty(cgroup, kPatience);  // what was not below us is not waited for there
  }
  if (!OwnCgroup::remove(cgroup) && OwnCgroup::look(cgroup) == OwnCgroup::Content::kPopulated) outcome.left = std::max(outcome.left, 1);
  return outcome;
}

std::string hidden_in(const std::string& cgroup, bool childless) {
  if (!childless || cgroup.empty() || OwnCgroup::look(cgroup) != OwnCgroup::Content::kPopulated) return "";
  return fmt::format("the control group {} is not empty", cgroup);
}

}  // namespace phalanx::agent
