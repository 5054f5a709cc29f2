// Why the agent in a container did not start, or ended with it, as the host's side of the start line found it (container_start.h). On
// stderr:
//   PHALANX-CONTAINER engine              docker, podman or apptainer is not in the PATH
//   PHALANX-CONTAINER state STATUS        of a container, as `inspect` says it; of an image "present"
//   PHALANX-CONTAINER absent [NAME…]      what there is instead, up to 12
//   PHALANX-CONTAINER silent              the engine does not answer even when it is asked what there is
//   PHALANX-CONTAINER command             the user's line failed
// The text comes from the host and is bounded by its reader (Death).
#pragma once

#include <optional>

#include "hosts/connect/transport.h"

namespace phalanx::hosts {

// started: the agent's stream had begun. none: it was not the container, ask the transport.
std::optional<base::Error> explain_container(const Target& target, const Death& death, bool started);

// What the engine and the agent printed: stderr without those lines.
std::string without_marks(const std::string& stderr_text);

}  // namespace phalanx::hosts
