// What the supervisor sees and what it wants done: plain data. The loop performs the actions; a simulator can as well.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "diagnosis/hang/hang.h"
#include "diagnosis/hang/straggler.h"
#include "job/stall.h"
#include "os/clock.h"
#include "wire/check_messages.h"
#include "wire/guard_end.h"
#include "wire/rank_event.h"
#include "wire/sample_messages.h"

namespace phalanx::job {

// --- events ----------------------------------------------------------------------------------------------------------
using FromHost =
    std::variant<wire::Hello, wire::Prepared, wire::StoreOpened, wire::Reached, wire::Started, wire::Exited, wire::Connected, wire::Pong,
                 wire::Finished, wire::Trouble, wire::Probed, wire::Listening, wire::Dialed, wire::Sampled, wire::Dug>;
struct HostSaid {
  size_t host = 0;
  FromHost message;
};
struct HostEnded {
  size_t host = 0;
  base::Error error;
  std::optional<wire::GuardEnd> guard = {};  // the guard of its agent has ended the ranks
};  // its connection is over, wanted or not
// What ranks say and use while they run. No decision follows at once, and there are many: nothing is sent or told for them.
struct RankAdvanced {
  uint32_t rank = 0;
  wire::RankProgress progress;
};
struct HostReported {
  size_t host = 0;
  size_t bytes = 0;                                              // of the frame
  std::variant<wire::Output, RankAdvanced, wire::Pulse> report;  // an Output's data is valid during the step
};
struct OperatorSignal {
  int signal = 0;                                       // SIGINT, SIGTERM, SIGHUP
  std::optional<std::chrono::milliseconds> grace = {};  // instead of the job's own
  std::optional<std::chrono::milliseconds> limit = {};  // the time limit that was reached: no person sent this
};
struct Tick {};  // at least every 250 ms
// Between two attempts: what a host that had not said its end answers when it is asked in a new login (ProveEmpty).
struct HostProved {
  enum class Proof {
    kAsked,  // it could be reached; the answer is to come
    kEmpty,  // no process of the run is left on it
    kLeft,   // some could not be ended, though they were killed: they run no instruction any more (state D)
    kUnknown,
  } proof = Proof::kUnknown;
  size_t candidate = 0;  // of the run's pool
};
using Event = std::variant<HostSaid, HostReported, HostEnded, OperatorSignal, Tick, HostProved>;

// --- the end -----------------------------------------------------------------------------------------------------------
struct Verdict {
  enum class Kind { kDone, kPlanned, kChecked, kRefused, kRankFailed, kHostLost, kHung, kInterrupted } kind = Kind::kDone;
  int exit_code = 0;
  std::string code;                     // of codes/, where there is a cause to name: "RUN-OOM-CGROUP"
  std::string evidence;                 // one line: the exception, what the kernel said; may be empty
  std::string where;                    // "train.py:42 (step)"; may be empty
  bool unfit = false;                   // kRefused: by the checks; what they found is in state.examination
  std::vector<base::Error> refusals;    // kRefused: one per host that cannot; kHostLost: one; kChecked: hosts that could not be reached
  int rank = -1;                        // kRankFailed: the cause; it may have ended with 0 (RUN-LEFT-EARLY)
  size_t host = 0;                      // kRankFailed, kHostLost
  int status = 0;                       // kRankFailed: as from waitpid
  std::optional<os::nanoseconds> lead;  // kRankFailed: time to the next end of any rank
  int also_failed = 0;                  // ranks that failed by themselves later
  int stopped = 0;                      // ranks stopped by us
  int lost = 0;                         // ranks that went with their host
  bool suspended = false;               // kHostLost: by us, who had not run for longer than the lease; no host is to blame
  std::string error_file;               // of the failed rank, may be empty
  std::vector<size_t> unfit_hosts;      // kRefused, kHostLost: those it is the fault of, in host order; empty: of the job itself
  std::optional<diagnosis::Diagnosis> hang;  // kHung
  int attempt = 0;                           // the last one: so many restarts were made
};

// --- notes: what the user should hear while the run goes on ------------------------------------------------------------
struct RunStarted {
  int world = 0;
  size_t hosts = 0;
  std::string address;
  int port = 0;
};
struct WaitingForStore {
  std::vector<int> missing;
};  // others have connected, these have not
struct WaitingForHosts {
  std::vector<size_t> hosts;
  bool open = false;
};  // not open yet; or open, and slow to answer the checks
struct StoppingRanks {
  int signal = 0;
  std::vector<int> awaited;
  std::chrono::milliseconds grace{};
  bool by_operator = false;
};
struct KillingRanks {
  std::vector<int> awaited;
  bool by_operator = false;
};
struct HostLeftovers {
  size_t host = 0;
  int killed = 0;
  int left = 0;
};  // processes ranks had left running
struct HostTrouble {
  size_t host = 0;
  std::string text;
};
struct Concerns {
  size_t from = 0;  // position in state.survey.examination.findings: those before it have been told
};  // what the checks have found that does not stop the run
struct NotSuspended {};  // Ctrl-Z: a launcher that stands still is taken for dead by its hosts
struct Replaced {
  std::string name, by;  // by empty: nobody, the run goes on without it
};
struct Restarting {
  Verdict ended;    // of the attempt before
  int attempt = 0;  // the one to come
  int restarts_left = 0;
  bool before_start = false;  // no rank has run: this is no restart, another host is taken
  std::chrono::milliseconds wait{};
  bool sooner = false;  // if the hosts that are asked answer that nothing is left
  std::vector<Replaced> replaced;
};  // the state told with it is that of the attempt that ended
struct NotRestarting {
  enum class Why { kRepeats, kBudget } why = Why::kBudget;
  int restarts = 0;  // made
};
struct WaitingForGpuMemory {
  size_t host = 0;
};  // of ranks of the attempt before, which are dead
struct Stalled {
  diagnosis::Diagnosis verdict;
  os::nanoseconds still{};   // nothing has moved for so long
  bool steps_known = false;  // else: nobody has said anything
  OnStall action = OnStall::kReport;
};
struct GoesOn {
  os::nanoseconds stood{};
};  // a stall that was told is over
struct Slow {
  diagnosis::Diagnosis verdict;
};  // the run goes on, slower than it need be; each told once
using Note = std::variant<WaitingForGpuMemory, Stalled, GoesOn, Slow, Restarting, NotRestarting, NotSuspended, Concerns, RunStarted,
                          WaitingForStore, WaitingForHosts, StoppingRanks, KillingRanks, HostLeftovers, HostTrouble>;

// --- actions -----------------------------------------------------------------------------------------------------------
using ToHost = std::variant<wire::Prepare, wire::OpenStore, wire::Reach, wire::Start, wire::Signal, wire::Ping, wire::Finish, wire::Probe,
                            wire::Listen, wire::Dial, wire::Sample, wire::Dig>;
struct Send {
  size_t host = 0;
  ToHost message;
};
struct CutHost {
  size_t host = 0;
};  // kill its connection; HostEnded follows
struct AbandonOpening {};  // HostEnded follows for every host not open yet
struct Tell {
  Note note;
};
struct End {
  Verdict verdict;
};  // the last action; connections may be dropped
// Of a run, between its attempts (run.h): drop every connection, nothing more is heard over them; open the attempt's hosts.
struct CloseHosts {};
struct OpenHosts {};
// Log in to these hosts of the pool, kill what the run has left there, and see that nothing is. HostProved follows, until OpenHosts.
struct ProveEmpty {
  std::vector<size_t> candidates;
};
using Action = std::variant<Send, CutHost, AbandonOpening, Tell, CloseHosts, OpenHosts, ProveEmpty, End>;
using Actions = std::vector<Action>;

}  // namespace phalanx::job
