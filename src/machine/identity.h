// Who and what this machine is: the few facts a launch needs. Reads are rooted at `root`, "/" or a folder that stands in
// for a machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/net.h"

namespace phalanx::machine {

struct Identity {
  std::string hostname;
  std::string user;
  uint32_t cpus = 1;                            // this process may run on (sched_getaffinity)
  uint32_t gpus = 0;                            // NVIDIA devices this process may use
  std::vector<os::InterfaceAddress> addresses;  // of interfaces that are up; loopback and IPv6 link-local left out
};

// visible_devices: this machine's own CUDA_VISIBLE_DEVICES, or nullptr if it is not set.
Identity identify(const std::string& root, const char* visible_devices);

// What checks rest on, as one word of 32 hex digits: it changes with the boot, the network namespace, an interface, an address, a route's
// interface, the number of GPUs, and the variables of `environment` ("K=V") that NCCL, Gloo, CUDA and UCX read. A few file reads.
std::string fingerprint(const Identity& id, const char* const* environment);

// NVIDIA GPUs known to the kernel driver under `root`: /proc/driver/nvidia/gpus, else /dev/nvidia<N>.
uint32_t count_gpus(const std::string& root);
}  // namespace phalanx::machine
