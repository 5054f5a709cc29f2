// What the supervisor knows of the checks before a start, and what they have come to.
#pragma once

#include <optional>
#include <vector>

#include "doctor/examine.h"
#include "doctor/situation.h"
#include "job/choose.h"
#include "os/clock.h"

namespace job {

inline constexpr os::milliseconds kProbeGrace{700};  // beyond the probe's deadline: a host that has not answered by then hangs

struct Checks {
  enum class Stage { kNone, kProbing, kListening, kDialing, kDone };
  Stage stage = Stage::kNone;
  std::optional<os::Mono> deadline;  // of the stage
  std::vector<bool> answered;        // per host, in this stage: has answered, or is given up

  doctor::Situation situation;      // hosts: from the beginning of the checks; the rest as it is found out
  doctor::Examination examination;  // when kDone
  std::optional<Choices> choices;   // when kDone
};

}  // namespace job
