// The flight recorder's dumps of a run, as torch leaves them: files <prefix><rank> (TORCH_NCCL_DEBUG_INFO_TEMP_FILE), in one or more
// folders.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/hang/flight_recorder.h"

namespace phalanx::diagnosis {

struct FlightDumps {
  std::vector<RankRecord> records;   // by rank
  std::vector<std::string> refused;  // "PATH: why"; of folders only what looks like a dump and cannot be read
};

// Each path is a dump or a folder of dumps (not the folders in it). The rank is the number at the end of a file's name, before an ending
// like ".json". At most 16,384 dumps. Error kConfig: a path that is not there, or not one dump among them.
base::Result<FlightDumps> read_flight_dumps(const std::vector<std::string>& paths);

// The files of a folder, not of those in it, that look like dumps, by name. Error: the folder cannot be read.
base::Result<std::vector<std::string>> flight_dumps_in(const std::string& folder);

// "nccl_trace_rank_12" → 12, "dump_3.json" → 3; none: the name has no number there.
std::optional<int> rank_of_file_name(std::string_view name);

}  // namespace phalanx::diagnosis
