// How the agent is started in a container: one line of sh for the host, whatever transport carries it there.
//
// In a container that runs already, and behind a command of the user's, the deploy script (deploy.h) runs inside: `docker exec -i NAME sh
// -c SCRIPT`. For an image it runs on the host, and the folder of the deployed agent is mounted into the container. The stream of the agent
// is the engine's standard input and output either way. The engine's client may be killed without the container noticing; the agent then
// reads the end of its input, and ends everything (agent/guard.h), or its lease does.
//
// What a container hides can only be seen from outside, so the host's side of the line tells the agent (PHALANX_OUTSIDE,
// machine/outside.h). When the engine fails, that side looks why, and says so on stderr as "PHALANX-CONTAINER …" (container_end.h).
#pragma once

#include <string>

#include "hosts/connect/transport.h"

namespace phalanx::hosts {

// What ssh and srun are given: words that every login shell passes on unchanged. Without a container remote_command() (deploy.h).
std::string far_command(const Target& target, const std::string& build);

// The same as POSIX sh. target.container is one.
std::string container_script(const Container& container, const std::string& build, const std::string& tag);

// "docker exec -i train …", for people: what is run on the host, options in brackets only where it has the devices.
std::string shown_start(const Container& container);

// The command line that runs `command` (a line of sh) in the container, typed on its host; empty if there is none to type.
std::string typed_inside(const Container& container, const std::string& command);

}  // namespace phalanx::hosts
