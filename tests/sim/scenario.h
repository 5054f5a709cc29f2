// What one simulated run is made of: the job, and the faults that are put into it. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "job/job.h"
#include "os/clock.h"

namespace phalanx::sim {

using os::milliseconds;

// A chooser that is the same on every machine: std::mt19937_64, and no distribution of the library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // In [least, most].
  int64_t between(int64_t least, int64_t most) { return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1)); }
  bool once_in(int n) { return between(1, n) == 1; }
  milliseconds ms(int64_t least, int64_t most) { return milliseconds(between(least, most)); }
  size_t below(size_t n) { return static_cast<size_t>(between(0, static_cast<int64_t>(n) - 1)); }

 private:
  std::mt19937_64 engine_;
};

// A part of a run that a fault can be tied to. Between attempts the launcher waits until the last one is known to be over.
// kLaunching: the hosts prepare, and look whether they reach the store.
enum class Stage { kOpening, kChecks, kLaunching, kRunning, kStopping, kBetween };
inline constexpr Stage kStages[] = {Stage::kOpening, Stage::kChecks, Stage::kLaunching, Stage::kRunning, Stage::kStopping, Stage::kBetween};
const char* name(Stage stage);

struct Fault {
  enum class Kind {
    // of a rank
    kCrash,       // it ends by itself with `status`
    kLeave,       // it ends with 0 before its time
    kHang,        // it never ends
    kDeaf,        // it does not end on SIGTERM
    kUnkillable,  // it does not end on SIGKILL either
    // of a host
    kPowerOff,
    kAgentKilled,
    kCut,           // no byte passes, either way, for `lasts`
    kOneWay,        // no byte passes from the host to us, for `lasts`
    kUnreachable,   // it cannot be logged in to, for `lasts` from the beginning
    kSlow,          // every message takes a second more, for `lasts`
    kRefuses,       // it answers Prepare with an error
    kNoStore,       // it cannot open the store, or reach it
    kNoStart,       // it cannot start a rank
    kUnfit,         // its facts show what the doctor refuses
    kMad,           // its agent says things at random
    kSilentProbe,   // it does not answer the probe
    kBrokenLink,    // its links to the others fail
    kAgentStopped,  // its agent does not run for `lasts`; its ranks do
    kGuardStopped,  // its agent's guard does not run for `lasts`
    kOnlyPings,     // its agent answers pings and does nothing else
    kHostile,       // its agent sends well-formed frames with hostile values
    // of ourselves
    kOperator,  // a signal
    kAsleep,    // the launcher does not run for `lasts`, at most one and a half leases
    kBlocked,   // nobody reads our output, or the disk of the logs hangs: of no consequence for the run
  } kind = Kind::kCrash;
  milliseconds at{0};  // after the start of the ranks of the attempt, for faults of ranks and hosts that run; else after the beginning
  milliseconds lasts{0};
  size_t target = 0;  // rank, or host of the pool
  int status = 0;
  int attempt = -1;                  // only in this one; -1: always
  std::optional<Stage> during = {};  // once, `at` after this stage has begun, if the run is still in it
};
const char* name(Fault::Kind kind);

inline constexpr const char* kFingerprint = "as it was minutes ago";  // of every host

struct Scenario {
  uint64_t seed = 0;
  job::Job job;
  std::vector<Fault> faults;
  milliseconds work{0};      // how long a rank works
  bool dies_slowly = false;  // who crashes says why, and ends some time after its peers have noticed
  bool peers_die = false;    // a rank's death ends its peers ("Connection closed by peer"), else they wait for ever
  bool links_slow = false;   // latencies of up to 200 ms instead of 2
  bool changed = false;      // the hosts are not as job.remembered has them
  int machines = 0;          // which of the healthy clusters (tests/situations) the hosts are of
  milliseconds patience{0};  // after this the operator gives up and presses Ctrl-C
};

Scenario make_scenario(uint64_t seed);
// Runs that come to this stage, and there this fault strikes. Kinds that only an answer can have (kRefuses, kUnfit, …) have a stage of
// their own and are not among kInAnyStage.
Scenario make_stage_scenario(Fault::Kind kind, Stage stage, uint64_t seed);
extern const std::vector<Fault::Kind> kInAnyStage;
// One rank in the middle fails, a second after the start; nothing else happens.
Scenario big_scenario(size_t hosts);
std::string describe(const Scenario& scenario);

}  // namespace phalanx::sim
