// Which users the ranks of this agent run as. An agent of root may start a command that changes its user (setpriv, runuser): that user then
// takes part in the run, and its connections to the store are as good as the agent's own.
#pragma once

#include <sys/types.h>

#include <map>

#include "os/clock.h"

namespace phalanx::agent {

class RankUsers {
 public:
  // Whether a process below this one runs as `uid`. Only root can have such; for any other user the answer is no, and costs nothing. A no
  // stands for kStands: whoever connects again and again must not keep the agent reading /proc.
  bool runs_as(uid_t uid);

 private:
  static constexpr os::milliseconds kStands{200};
  std::map<uid_t, os::Mono> refused_;
};

}  // namespace phalanx::agent
