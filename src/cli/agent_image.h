// The agent's program, embedded in the launcher by cmake/agent_image.cmake.
#pragma once

#include "hosts/connect/payload.h"

namespace phalanx::cli {

// build: the identity of what runs on hosts. Two launchers with the same agent share what they deployed.
hosts::AgentProgram agent_image();

}  // namespace phalanx::cli
