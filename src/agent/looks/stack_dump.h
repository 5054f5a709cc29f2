// Asks ranks that stand still where they are, with what the host has, the gentlest first: the Python hook's signal, py-spy, gdb. Collects
// what PyTorch's flight recorder has dumped. Runs in a child (forked_look.h): any of it can hang.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "os/clock.h"
#include "wire/sample_messages.h"

namespace phalanx::agent {

struct DigTarget {
  uint32_t rank = 0;
  pid_t pid = 0;
  std::string stack_file;  // where the hook writes; empty: no hook
};

// tools_path: PATH in which py-spy and gdb are looked for. A process that is stopped or traced already is left to itself.
wire::Dug dig(const wire::Dig& question, const std::vector<DigTarget>& targets, const std::string& tools_path, os::milliseconds budget);

// The files in which a rank's flight recorder leaves its dump and, if it has one, the pipe that asks for it: from its environment, as
// torch/csrc/distributed/c10d/FlightRecorder.cpp and ProcessGroupNCCL.cpp read it.
// phalanx-train looks at kFlightFileVariable where those are not set.
inline constexpr const char* kFlightFileVariable = "PHALANX_FLIGHT_FILE";
struct RecorderFiles {
  std::string dump, pipe;
};
RecorderFiles recorder_files(const std::vector<std::string>& environment, uint32_t rank);

}  // namespace phalanx::agent
