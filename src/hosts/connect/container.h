// The container of a host: there the agent runs, and with it the probes, the mesh test and the ranks, instead of on the host itself. All
// transports start it alike, by far_command() (container_start.h).
//
// Text form, of --container: docker:NAME and podman:NAME are containers that run already; docker-image:IMAGE, podman-image:IMAGE and
// apptainer:FILE are started for the run and removed with it; command:'PREFIX {}' is a line of sh in which {} stands for the command that
// starts the agent (chroot, nsenter, unshare).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::hosts {

inline constexpr size_t kLongestContainer = 4096;  // bytes of the text form

struct Container {
  enum class Kind { kNone, kDocker, kPodman, kDockerImage, kPodmanImage, kApptainer, kCommand };
  Kind kind = Kind::kNone;
  std::string what = {};                    // the name, the image, the path of the SIF file, or the line with {}
  std::vector<std::string> arguments = {};  // the user's own, for the engine; they come after ours
  std::string directory = {};               // mounted at the same path where the container is started for the run; absolute

  explicit operator bool() const { return kind != Kind::kNone; }
  bool made_for_run() const { return kind == Kind::kDockerImage || kind == Kind::kPodmanImage || kind == Kind::kApptainer; }
  const char* engine() const;  // "docker", "podman", "apptainer"; of kNone and kCommand ""
};

// Names and images hold nothing that a shell or an engine could read otherwise. Errors: kUsage.
base::Result<Container> parse_container(std::string_view text);
std::string to_text(const Container& container);  // of kNone ""

// Whether this is "docker:…" and so on; else it may begin with the host that it is for.
bool is_container_text(std::string_view text);

}  // namespace phalanx::hosts
