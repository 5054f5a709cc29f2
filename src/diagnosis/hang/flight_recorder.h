// torch's flight recorder: what each rank has asked of its process groups. Dumps of several ranks are read and laid beside each other: who
// never came to an operation, who came with another one, who waits for each other in a circle. Pure; flight_files.h reads folders.
//
// Format: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (versions 1.x and 2.x), as a pickle or as JSON;
// docs/formats/flight-recorder.md. The algorithm begins as torch/distributed/flight_recorder does (PyTorch's torchfrtrace), and goes on
// where that stops: missing dumps, overwritten rings, sends and receives, several groups at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doctor/finding.h"

namespace phalanx::diagnosis {

// A send or a receive.
struct TracePart {
  bool send = false;
  int peer = -1;     // rank in the job; -1: not known
  std::string what;  // "[1024, 3] Float"
};

struct TraceEntry {
  std::string group;     // key of pg_config: process_group[0]
  int64_t record = 0;    // record_id: counts all operations of the rank
  int64_t sequence = 0;  // collective_seq_id, or p2p_seq_id
  bool p2p = false;
  std::string name;           // "all_reduce"
  std::string input, output;  // "[1024, 3] Float"
  int64_t input_elements = 0, output_elements = 0;
  std::string state;             // "scheduled", "started", "completed"; a batch has that of its end
  std::string where;             // the innermost frame outside torch: "train.py:42 (step)"; empty: no frames
  std::vector<TracePart> parts;  // of a send, a receive, or a batch of them
};

struct TraceGroup {
  std::string description;
  std::vector<int> ranks;  // in the job; the place of a rank in it is its rank in the group. Empty: not told
};

struct RankTrace {
  int rank = 0;
  std::string version;
  std::map<std::string, TraceGroup> groups;
  std::vector<TraceEntry> entries;  // oldest first; the operations of a batch are one
  int64_t lost = 0;                 // entries that the ring had overwritten before the oldest
  bool cut = false;                 // there were more entries than are read
};

// A dump, pickle or JSON by its first byte. At most 64 MiB and 200,000 entries. Error: kConfig.
base::Result<RankTrace> read_flight_recorder(int rank, std::string_view bytes);
// Whether the beginning of a file looks like one.
bool looks_like_flight_recorder(std::string_view beginning);

struct FlightVerdict {
  enum class Kind {
    kNothing,    // every operation that is known of has been completed
    kNotJoined,  // `culprits` never came to the operation that the others wait in
    kMismatch,   // `culprits` came with another operation, size or type than the most; empty: it cannot be told who (all_to_all)
    kTogether,   // all came with the same, and it is not done: GPU or network
    kCircular,   // `culprits` wait for each other, each in another operation
    kUndecided,  // all that wrote a dump are in it; `without_dump` did not write one
  };
  Kind kind = Kind::kNothing;
  std::string_view code;  // of codes/runs/hang: HANG-NEVER-ENTERED, HANG-MISMATCH, HANG-TRANSPORT, HANG-CIRCULAR; empty: none
  std::string group;      // description, else its key
  int64_t sequence = 0;
  std::string collective;
  std::vector<int> culprits, waiting;
  std::vector<int> without_dump;  // of the group: dead, or not able to write; they are suspects where culprits is empty
  std::string where;              // where the first culprit was last seen: "train.py:88 (step)"
  doctor::Words evidence;
  std::vector<doctor::Words> notes;  // what limits the verdict: missing dumps, overwritten rings
};

// traces: one per rank, any order. Of several things that stand still, the one that explains the most waiting ranks.
FlightVerdict compare_flight_records(const std::vector<RankTrace>& traces);

}  // namespace phalanx::diagnosis
