// The commands that `phalanx stop` prints for the user to type. They hold numbers of processes, so each is written only from what was seen.
#pragma once

#include <cstdint>
#include <string>

#include "os/process_mark.h"

namespace phalanx::cli {

// Names the launcher's pid only while the process that has it is that launcher: else it may be another process's, or count in another
// container.
std::string hint_for_silent_launcher(const os::ProcessMark& launcher, const std::string& run_id);

// How to look at a process that a host could not look at; 0: at all of them.
std::string hint_to_look(const std::string& host, uint32_t pid);

}  // namespace phalanx::cli
