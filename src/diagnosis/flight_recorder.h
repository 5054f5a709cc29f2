// torch's flight recorder: what each rank has asked of its process groups. Dumps of several ranks are read and laid beside each other, and
// who never came to a collective, or came with another one, is named. Pure.
//
// Format: torch/csrc/distributed/c10d/FlightRecorder.hpp (versions 1.x and 2.x), as a pickle or as JSON; the algorithm begins as
// torch/distributed/flight_recorder does (tools/flight_recorder), and goes on where that stops: missing dumps, overwritten rings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doctor/finding.h"

namespace diagnosis {

struct TraceEntry {
  std::string group;     // key of pg_config: process_group[0]
  int64_t sequence = 0;  // collective_seq_id, or p2p_seq_id
  bool p2p = false;
  std::string name;           // "all_reduce"
  std::string input, output;  // "[1024, 3] Float"
  int64_t input_elements = 0, output_elements = 0;
  std::string state;  // "scheduled", "started", "completed"
  std::string where;  // the innermost frame outside torch: "train.py:42 (step)"; empty: no frames
};

struct TraceGroup {
  std::string description;
  std::vector<int> ranks;  // empty: not told
};

struct RankTrace {
  int rank = 0;
  std::string version;
  std::map<std::string, TraceGroup> groups;
  std::vector<TraceEntry> entries;  // oldest first; the ring may have lost the oldest
};

// A dump, pickle or JSON by its first byte. At most 64 MiB. Error: kConfig.
base::Result<RankTrace> read_flight_recorder(int rank, std::string_view bytes);

struct FlightVerdict {
  enum class Kind {
    kNothing,    // every collective that is known of has been completed
    kNotJoined,  // `culprits` never came to the collective that the others wait in
    kMismatch,   // `culprits` came with another operation, size or type than the most
    kTogether,   // all came with the same, and it is not done: GPU or network
  };
  Kind kind = Kind::kNothing;
  std::string group;  // description, else its key
  int64_t sequence = 0;
  std::string collective;
  std::vector<int> culprits, waiting;
  std::vector<int> without_dump;  // of the group: dead, or not able to write; they are suspects where culprits is empty
  doctor::Words evidence;
};

// traces: one per rank, any order. The first collective, by group, that is not done everywhere; of several groups the one whose stall
// explains the most ranks, and of those the one that fewer culprits explain.
FlightVerdict compare_flight_records(const std::vector<RankTrace>& traces);

}  // namespace diagnosis
