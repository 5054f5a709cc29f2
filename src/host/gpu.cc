// The GPUs: NVML first, nvidia-smi where it cannot be loaded, and always what the kernel shows of them.
#include <algorithm>

#include "host/gpu_sources.h"
#include "host/probe.h"
#include "os/clock.h"

namespace host {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForTheRest{300};  // files, links and log after the driver has answered or not
constexpr milliseconds kAtLeast{100};

// Something of NVIDIA is here, so that the kernel log and the rest are worth reading.
bool has_nvidia(const GpuFacts& facts) {
  return !facts.devices.empty() || !facts.kernel_module.empty() || facts.device_nodes > 0 || facts.pci_devices > 0;
}

}  // namespace

GpuFacts probe_gpus(const ProbeRequest& request) {
  os::Mono end = os::mono_now() + std::max(kAtLeast, request.deadline - kForTheRest);
  auto left = [&] { return std::max(kAtLeast, std::chrono::duration_cast<milliseconds>(end - os::mono_now())); };
  GpuFacts facts;
  if (!ask_nvml(request, left(), facts)) ask_smi(request, left(), facts);
  read_driver_files(request.root, facts);
  read_pci(request.root, facts);
  if (facts.driver.empty()) facts.driver = driver_library_version(request.root);
  if (!has_nvidia(facts)) return facts;
  find_paths(request.root, facts);
  describe_gpu_processes(request.root, facts);
  find_fabric_manager(request.root, facts);
  read_kernel_log(request.root, facts);
  return facts;
}

}  // namespace host
