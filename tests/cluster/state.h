// What is known of a cluster outside the processes that make it: a folder per cluster under kStateRoot, small text files.
//   guard          pid of the guard           lock       held (flock) by the guard while it lives
//   hosts          "name address" per line    <host>.pid pid of its pid 1, absent while it is off
//   control        the guard's socket
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::testbed {

inline constexpr const char* kStateRoot = "/run/phalanx-testbed";

std::string state_path(const std::string& cluster, const std::string& file = {});

base::Result<std::string> read_text(const std::string& path);
base::Status write_text(const std::string& path, const std::string& text, int mode = 0644);
base::Status make_folder(const std::string& path, int mode = 0755);  // and its parents
void remove_folder(const std::string& path);                         // with all that is in it

// Held while a cluster folder is made or swept, so that a half-made one is not taken for a dead one.
base::Result<os::Fd> lock_all_states();
base::Result<os::Fd> lock_state(const std::string& cluster);  // kTimeout at once when another process holds it

}  // namespace phalanx::testbed
