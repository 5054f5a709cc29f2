// When a run stands still. Pure: time comes with what happens.
//
// Where steps are known (the rank's own progress events, or step lines and progress bars in its output), the run stands still when no rank
// has made one for max(60 s, 5 × p95 of the last step times). Where none are known, when no rank has said anything for 300 s. --stall
// sets both. Before that, ranks that all use no CPU are looked at too: a deadlock that is proved is told at once (--stall 0: it is not).
// What follows is the supervisor's (job/attempt/stall.cc): all hosts are asked twice what their ranks do, the judge
// (diagnosis/hang/hang.h) looks at it, ranks are asked where they are, the user is told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnosis/hang/hang.h"
#include "diagnosis/hang/losses.h"
#include "diagnosis/hang/straggler.h"
#include "os/clock.h"
#include "wire/sample_messages.h"

namespace phalanx::job {

enum class OnStall { kReport, kRestart, kStop };

struct StallOptions {
  std::optional<os::milliseconds> threshold;  // 0: never; none: by the step times
  OnStall action = OnStall::kReport;
};

inline constexpr os::milliseconds kLeastStall{60'000};
inline constexpr os::milliseconds kSilentStall{300'000};  // where no step is known
inline constexpr int kStallSteps = 5;                     // times the p95 of the step times
inline constexpr os::milliseconds kEarlyStall{2500};      // without a step or output, for a look that may prove a deadlock
inline constexpr os::milliseconds kEarlyTold{5000};       // … that may tell of a process that is stopped, or of a dead connection
inline constexpr os::milliseconds kBetweenSamples{1000};
inline constexpr os::milliseconds kSamplePatience{1500};
inline constexpr os::milliseconds kDigPatience{2500};
inline constexpr os::milliseconds kWireReserve{500};  // beyond a host's own deadline

// Ranks that use no CPU (stopped ones too), by the pulses of their hosts. When all have used none for a moment, a look costs little and may
// prove a deadlock (diagnosis/hang/deadlock.h) long before the threshold. Looks that prove nothing become rarer until some rank is busy
// again.
class Idleness {
 public:
  void take(const wire::Pulse& pulse, os::Mono now);
  bool all_idle(const std::vector<int>& ranks) const;  // each has been in its whole last window
  bool due(os::Mono now) const { return now >= again_at_; }
  void proved_nothing(os::Mono now);
  void forget() { *this = {}; }

 private:
  std::map<int, bool> idle_;
  os::nanoseconds pause_{};  // before the next look
  os::Mono again_at_;
};

// What has moved, and when.
class Movement {
 public:
  void begin(os::Mono now);                           // ranks start
  void step(int rank, int64_t number, os::Mono now);  // any other number than before is a step
  void output(int rank, std::string_view text, bool bar, os::Mono now);
  void pause(os::Mono now);  // we did not look, or did not read: what passed until now does not count

  bool steps_known() const { return steps_.size() >= kEnough; }
  os::nanoseconds still(os::Mono now) const { return now - moved_; }
  // How long nothing may move before it is a stall; none: never.
  std::optional<os::nanoseconds> threshold(const StallOptions& options) const;
  std::optional<int64_t> last_step(int rank) const;
  int64_t steps() const { return count_; }                                   // that were timed
  os::nanoseconds usual_step() const;                                        // the median of the last 8; 0: there are not so many
  const std::vector<os::nanoseconds>& step_times() const { return steps_; }  // the last 64

 private:
  static constexpr size_t kEnough = 3;
  struct Rank {
    std::optional<int64_t> step;
    os::Mono stepped, searched;
    std::string unsearched;  // the end of what came since it was searched last
  };
  std::map<int, Rank> ranks_;
  std::optional<int> timed_;  // the rank whose steps are timed: the first that told of two
  std::vector<os::nanoseconds> steps_;
  size_t next_ = 0;
  int64_t count_ = 0;
  os::Mono moved_;
};

// The state of one look into a stall.
struct Stall {
  enum class Stage { kWatching, kFirst, kBetween, kThen, kDigging, kTold } stage = Stage::kWatching;
  Movement movement;
  Idleness idleness;
  bool early = false;  // this look is before the threshold: only a proof is told
  os::Mono asked_at, first_at, deadline, ticked;
  os::Mono moved_before;  // of the movement that ended, for how long it stood
  uint32_t id = 0;        // of the last question
  std::vector<bool> awaited;
  std::map<size_t, machine::HostSample> first, then;  // by host
  std::map<size_t, std::string> unanswered;
  std::map<int, std::string> stacks;
  std::vector<diagnosis::RankRecord> records;  // of flight recorders
  std::optional<diagnosis::RasReport> ras;
  double between_s = 1;
  std::optional<diagnosis::Diagnosis> verdict;
  bool told = false;
  os::Mono again_at;  // where nothing could be told: when to look again
};

// What runs slowly, looked for while it runs.
struct SlowWatch {
  diagnosis::Stragglers stragglers;
  diagnosis::Losses losses;
  os::Mono looked_at;
  os::Mono gpus_at;  // when the GPUs are to be looked at next
  uint32_t gpus_id = 0;

  // What ranks spend their time on: looked at when steps begin, when they become slower, and now and then.
  os::Mono shares_at, shares_deadline;
  os::nanoseconds shares_pause{};  // after a look to which not all have answered; each such makes it longer
  uint32_t shares_id = 0;
  uint32_t looks = 0;          // asked for; 0: nothing is under way
  int64_t shares_steps = 0;    // made before it
  std::vector<int64_t> steps;  // made at each of the last looks, a second apart
  bool steps_began = false;
  os::nanoseconds usual_step{};   // when it was looked last
  std::set<size_t> awaited;       // hosts
  std::optional<size_t> suspect;  // without visible steps: the host that was waited for, since
  os::Mono suspected_at;
  std::vector<diagnosis::RankShares> coming, shares;  // of this look; of the last that was whole, by rank
};
inline constexpr os::milliseconds kSlowLook{1000};
inline constexpr os::milliseconds kFirstGpuLook{60'000};  // after the start
inline constexpr os::milliseconds kGpuLook{300'000};
inline constexpr uint32_t kGpuQuestion = 1u << 31;     // in a Sample's id: of the GPUs, not of a stall
inline constexpr uint32_t kSharesQuestion = 1u << 29;  // of what ranks spend their time on

inline constexpr os::milliseconds kFirstShares{10'000};  // after the first steps
inline constexpr os::milliseconds kSharesWithoutSteps{60'000}, kSharesLater{300'000}, kSharesSoonest{20'000};
inline constexpr os::milliseconds kSharesTime{5000}, kSharesLongest{25'000};
inline constexpr int kSharesSteps = 4;  // are to be made meanwhile; half of them must be: who works alone in a long phase is no straggler
inline constexpr size_t kStepsLooks = 20;
inline constexpr uint32_t kFewLooks = 24, kManyLooks = 72;  // the second follows a suspicion
inline constexpr double kSlowerSteps = 1.3;                 // times as long as they were

}  // namespace phalanx::job
