// NCCL's RAS report, as text (2.24 and later) or JSON (2.28.7 and later): which communicators a job has, whose counts of operations differ,
// and which processes do not answer. Pure; machine/ranks/ras_client.h asks for it. docs/formats/nccl-ras.md.
//
// The text names only outliers, and counts only where they differ; JSON has every rank. Both become the same report.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnosis/hang/records.h"

namespace phalanx::diagnosis {

struct RasMember {
  int rank = -1;  // in the communicator; -1: not said
  std::string host, gpu;
  int64_t pid = 0;  // 0: not said
};

// Ranks of one communicator that have something in common where others differ.
struct RasCamp {
  std::string what;   // "status", "init error", "async error", else the operation: "AllReduce"; "collective" before 2.26
  std::string value;  // "RUNNING", "Unhandled CUDA error"; of operations the count in decimal
  int64_t operations = -1;
  int count = 0;                   // of ranks
  std::vector<RasMember> members;  // those that are named
};

struct RasCommunicator {
  std::string id;    // "#0-0"; of JSON its hash
  std::string hash;  // "cf264af53edbe986", without 0x
  int size = 0;      // 0: not said
  std::vector<RasCamp> camps;
  int missing_count = 0;
  std::vector<RasMember> missing;                        // ranks that have not answered
  std::map<int, std::map<std::string, int64_t>> counts;  // by rank and operation; JSON only
  std::map<int, RasMember> ranks;                        // JSON only
};

struct RasReport {
  bool json = false;
  std::string version;                         // of NCCL
  int nodes = 0, processes = 0, gpus = 0;      // 0: not said
  int communicators_told = 0;                  // in the table, or in JSON
  std::vector<RasCommunicator> communicators;  // of text only those with something to say
  std::vector<RasMember> dead, unresponsive;   // processes
  int timeouts = 0;
  bool cut = false;  // it ends before its end
};

// Error kConfig: neither.
base::Result<RasReport> read_ras(std::string_view text);
bool looks_like_ras(std::string_view beginning);

// Every process that is told of.
void for_each_member(RasReport& report, const std::function<void(RasMember&)>& see);

// What stands still by it, with ranks as the report numbers them; those without a number are counted, and not among the culprits.
// now: the latest reading. before: an older one, or null; then a difference may be the moment's, and a note says so. seconds_between: 0 if
// it is not known.
Standstill judge_ras(const RasReport& now, const RasReport* before, double seconds_between);

}  // namespace phalanx::diagnosis
