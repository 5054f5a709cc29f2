// What NCCL's log tells of a run's network: who is missing, who stopped where, which ways are slower than they could be. Pure.
//
// A finding says what is in the logs that were read. Ranks whose logs are missing are not held to be missing from the run where any rank
// came past the meeting: that needs all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/finding.h"
#include "logs/nccl/topology.h"

namespace phalanx::diagnosis {

struct NcclFinding {
  std::string_view code;  // of codes/runs or codes/checks
  doctor::Severity severity = doctor::Severity::kError;
  std::string communicator;        // its id; empty: of none, or it has none
  std::vector<int> ranks;          // in that communicator; may be empty
  bool ranks_of_job = false;       // they are those of the job: it is the one communicator that holds the most ranks
  std::vector<std::string> hosts;  // sorted
  doctor::Words evidence;
  std::vector<std::pair<uint64_t, std::string>> lines;  // numbers as they were given to NcclLog, and what ranks said last; may be empty
};

// The gravest first. At most one finding of a code for each communicator.
std::vector<NcclFinding> judge_nccl(const logs::NcclTopology& topology);

// A part of a report: lines that can be printed as they are.
struct NcclSection {
  doctor::Words title;
  std::vector<doctor::Words> lines;
};

// Processes, communicators, a table of transports by pair of hosts, where ranks stopped, warnings. Empty lines: the logs hold nothing of
// NCCL. At most about a hundred lines; what is left out is counted. place: how a line is named, from the number that was given to NcclLog.
NcclSection nccl_section(const logs::NcclTopology& topology, const std::function<std::string(uint64_t)>& place);

// Ranks that are in the middle of something at the end of the log. None where the communicator was given up, or where its channels are
// all that is told of it: a piece of a log has no end.
std::vector<int> nccl_stopped(const logs::NcclCommunicator& communicator);
// "bootstrap: waits for other ranks", …; empty: the rank is where it should be.
doctor::Words nccl_phase(const logs::NcclRank& rank);

}  // namespace phalanx::diagnosis
