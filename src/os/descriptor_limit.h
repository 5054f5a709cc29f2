// How many descriptors this process may hold. The usual soft limit of 1024 is too low for a launcher: a host takes three pipes and
// maybe a socket, a rank a log file. So the launcher raises its own soft limit to the hard one, and what it spawns (os/process.h) gets back
// the limit that it was started with: a program may break with another, select(2) among them.
#pragma once

#include <sys/resource.h>

#include <optional>

namespace phalanx::os {

// Raises the soft limit as far as it is allowed. Call once, at the start of the program.
void raise_descriptor_limit();
// The limit as it was before that. None: it was not raised.
std::optional<rlimit> original_descriptor_limit();
// Whether this process can open so many descriptors more right now. It opens them, and closes them again.
bool can_open_more(int descriptors);
// One of the first quarter of those that this process may hold.
bool is_low_descriptor(int fd);
// What starting a program takes: three pipes, the one its failure is reported on, and copies of the child's ends.
inline constexpr int kSpawnDescriptors = 12;

}  // namespace phalanx::os
