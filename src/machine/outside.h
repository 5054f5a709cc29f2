// What the host of a container is like, as seen from the host: the launcher's start line looks there and passes it on in PHALANX_OUTSIDE
// (hosts/connect/container_start.h), "net=net:[4026531840] pid=pid:[4026531836] gpus=8 infiniband=1 init=812". From inside, nothing shows
// what a container lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"

namespace phalanx::machine {

inline constexpr const char* kOutsideVariable = "PHALANX_OUTSIDE";

struct Outside {
  std::string net_space, pid_space;  // of the host; empty: not known, or this is no container
  std::optional<int64_t> gpus;       // /dev/nvidia0…
  std::optional<bool> infiniband;    // /dev/infiniband
  int64_t init = 0;                  // the container's first process, as the host counts; 0: not known
};

PHALANX_FIELDS(Outside, net_space, pid_space, gpus, infiniband, init);

// Whatever is malformed is left out.
Outside parse_outside(std::string_view text);

// "net:[4026531840]" of this process, in the folder that stands for /proc; empty: cannot be read. space: "net", "pid".
std::string own_space(const std::string& proc, const char* space);

}  // namespace phalanx::machine
