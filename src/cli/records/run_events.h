// What events.jsonl of a run says, read back (docs/formats/run-directory.md).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace phalanx::cli {

inline constexpr size_t kMaxEventBytes = 64 << 20;

struct RunEvent {
  std::string time;  // ISO, UTC
  std::string name;
  base::Json fields;  // the whole object
};
// In order; lines that make no sense are left out. A longer file than kMaxEventBytes gives its end.
base::Result<std::vector<RunEvent>> read_events(const std::string& run_folder);

// Of every host: the process ids its ranks have had.
base::Result<std::map<std::string, std::set<int64_t>>> started_pids(const std::string& run_folder);

}  // namespace phalanx::cli
