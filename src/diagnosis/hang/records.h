// What ranks have asked of each other: one table, whoever tells it, and what stands still in it. Pure.
//
// A flight recorder (flight_recorder.h), NCCL's RAS (ras.h), PyTorch's watchdogs (watchdog.h) and samples of the processes (hang.h) each
// become records; compare_records lays them beside each other: who never came to an operation, who came with another one, who waits for
// each other in a circle. Records of several sources go together: a rank whose flight recorder wrote nothing has its sample.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/diagnosis.h"

namespace phalanx::diagnosis {

// A send or a receive.
struct Transfer {
  bool send = false;
  int peer = -1;     // rank in the job; -1: not known
  std::string what;  // "[1024, 3] Float"
};

struct Operation {
  std::string group;     // a key of RankRecord::groups
  int64_t record = 0;    // counts all operations of the rank
  int64_t sequence = 0;  // counts those of the group; 0: not told
  bool p2p = false;
  std::string name;           // "all_reduce"; empty: not known
  std::string input, output;  // "[1024, 3] Float"
  int64_t input_elements = 0, output_elements = 0;
  std::string state;              // "scheduled", "started", "completed"; a batch has that of its end
  std::string where;              // the innermost frame outside torch: "train.py:42 (step)"; empty: no frames
  std::vector<Transfer> parts{};  // of a send, a receive, or a batch of them
  bool comparable = true;         // false: that it is another one than its neighbours' cannot be told
};

struct GroupRecord {
  std::string description;
  std::vector<int> ranks;      // of the job; the place of a rank in it is its rank in the group. Empty: those that tell of it
  bool open = false;           // it may have members that are not known
  std::vector<int> further{};  // where `ranks` is empty: members beside those whose records tell of it; one record is enough
  std::string within{};        // groups of one communicator, whose operations come in one order; empty: of none
};

enum class Source { kFlightRecorder, kRas, kWatchdog, kSample };

struct RankRecord {
  int rank = 0;  // of the job; below 0: ranks that are not named
  Source source = Source::kFlightRecorder;
  std::map<std::string, GroupRecord> groups;
  std::vector<Operation> entries;  // oldest first; the operations of a batch are one. Of counts: what the fewest are behind in first
  int64_t lost = 0;                // entries that a ring had overwritten before the oldest
  bool cut = false;                // there were more entries than are read
  bool gaps = false;               // the numbers of a group's collectives may have gaps: sends are counted too
  int count = 1;                   // of the ranks that are not named
  doctor::Words name{};            // empty: "rank 3"
  std::string host{};              // empty: not told
  doctor::Words instead{};         // what it does if it has not come: "sleeps (clock_nanosleep)"; empty: its last operation is told
  std::string_view absent_code = "HANG-NEVER-ENTERED";  // what it is called that it has not come
  std::string version{};                                // of the recorder
};

struct Standstill {
  enum class Kind {
    kNothing,    // every operation that is known of has been completed
    kNotJoined,  // `culprits` never came to the operation that the others wait in
    kMismatch,   // `culprits` came with another operation, size or type than the most; empty: it cannot be told who (all_to_all)
    kTogether,   // all came with the same, and it is not done: GPU or network
    kCircular,   // `culprits` wait for each other, each in another operation
    kUndecided,  // all that are known of are in it; `unknown` have no record, or there may be others
    kSilent,     // `culprits` do not answer NCCL's RAS, or are dead
    kError,      // `culprits` report an error
    kStill,      // all have launched the same, and nothing moves
  };
  Kind kind = Kind::kNothing;
  std::string_view code{};  // of codes/runs; empty: none
  std::string group{};      // description, else its key
  int64_t sequence = 0;
  std::string collective{};
  std::vector<int> culprits{}, waiting{};  // ranks of the job, ascending
  std::vector<int> unknown{};              // of the group: without a record; they are suspects where culprits is empty
  std::string where{};                     // where the first culprit was last seen: "train.py:88 (step)"
  std::string host{};                      // of the culprits, where it is one and told
  doctor::Words evidence{};
  std::vector<doctor::Words> notes{};  // what limits the verdict: missing dumps, overwritten rings
};

// One record per rank, any order; of a rank that has two, the one in `also` counts only without another. Of several things that stand
// still, the one that explains the most waiting ranks.
Standstill compare_records(std::span<const RankRecord> records, std::span<const RankRecord> also = {});

}  // namespace phalanx::diagnosis
