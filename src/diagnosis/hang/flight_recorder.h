// torch's flight recorder: what each rank has asked of its process groups. Pure; flight_files.h reads folders.
//
// Format: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (versions 1.x and 2.x), as a pickle or as JSON;
// docs/formats/flight-recorder.md. The comparison (records.h) begins as torch/distributed/flight_recorder does (PyTorch's torchfrtrace),
// and goes on where that stops: missing dumps, overwritten rings, sends and receives, several groups at once.
#pragma once

#include <string_view>

#include "base/result.h"
#include "diagnosis/hang/records.h"

namespace phalanx::diagnosis {

// A dump, pickle or JSON by its first byte. At most 64 MiB and 200,000 entries. Error: kConfig.
base::Result<RankRecord> read_flight_recorder(int rank, std::string_view bytes);
// Whether the beginning of a file looks like one.
bool looks_like_flight_recorder(std::string_view beginning);

}  // namespace phalanx::diagnosis
