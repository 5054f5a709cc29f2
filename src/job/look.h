// What every rank does now, for a person who asks while the run goes on (`phalanx stacks`, `phalanx why`): all hosts are sampled twice, a
// second apart, the second time with stacks. It stands beside the supervisor: nothing is decided by it, and the run does not notice.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/supervisor/supervisor.h"
#include "machine/ranks/sample.h"
#include "os/loop.h"

namespace phalanx::job {

inline constexpr os::milliseconds kLookPatience{6000};  // of both samples, with what lies between them
inline constexpr size_t kMostLookBytes = 3 << 20;       // of the answer; ranks that do not fit are told without their threads

struct LiveLook {
  std::vector<std::function<void(const std::string& json)>> asked;
  uint32_t id = 0;
  bool again = false;  // the second sample is under way
  bool waits = false;  // between the two
  os::TimerId timer = 0;
  std::map<size_t, machine::HostSample> first, then;  // by host
  std::map<size_t, std::string> unanswered;
  std::vector<bool> awaited;

  bool is_answer(uint32_t to) const { return !asked.empty() && to == id; }
};

// The answer. Pure.
base::Json look_json(const State& state, const LiveLook& look, os::Mono now);

}  // namespace phalanx::job
