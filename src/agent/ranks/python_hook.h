// The Python hook (--python-hook): a sitecustomize.py in front of the ranks' PYTHONPATH that makes Python write the stacks of all its
// threads to a file of ours when it gets a real-time signal (faulthandler). It then takes itself out of sys.path and of the environment
// and loads the user's own sitecustomize, so the program sees what it would have seen.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "agent/ranks/environment.h"

namespace phalanx::agent {

inline int hook_signal() { return SIGRTMAX - 3; }
inline constexpr const char* kStackFileVariable = "PHALANX_STACK_FILE";

// Writes the hook below `scratch` and returns its folder; empty: it could not be written.
std::string write_python_hook(const std::string& scratch);
// What a rank's environment needs for the hook in `folder` to write to `stack_file`.
void add_python_hook(Environment& environment, const std::string& folder, const std::string& stack_file);
// The process catches hook_signal(): without a handler the signal would end it.
bool catches_hook_signal(pid_t pid);

}  // namespace phalanx::agent
