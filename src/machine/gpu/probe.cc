// The GPUs: NVML first, nvidia-smi where it cannot be loaded, and always what the kernel shows of them.
#include <algorithm>

#include "base/text.h"
#include "machine/gpu/sources.h"
#include "machine/probe.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForTheRest{300};  // files, links and log after the driver has answered or not
constexpr milliseconds kAtLeast{100};

// Something of NVIDIA is here, so that the kernel log and the rest are worth reading.
bool has_nvidia(const GpuFacts& facts) {
  return !facts.devices.empty() || !facts.kernel_module.empty() || facts.device_nodes > 0 || facts.pci_devices > 0;
}

// Whether the driver's library may be found by its name, as dlopen would: LD_LIBRARY_PATH, the linker's cache, the standard folders.
bool library_in_reach(const ProbeRequest& request) {
  if (!request.root.empty()) return true;  // looked for by file (library_files)
  constexpr const char* kLibrary = "libnvidia-ml.so.1";
  constexpr size_t kMostCache = 16 << 20;
  if (!os::environment_value("PHALANX_NVML").empty()) return true;
  std::string path = os::environment_value("LD_LIBRARY_PATH");
  for (std::string_view folder : base::split(path, ':'))
    if (!folder.empty() && os::exists(std::string(folder) + "/" + kLibrary)) return true;
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"})
    if (os::exists(std::string(folder) + "/" + kLibrary)) return true;
  base::Result<std::string> cache = os::read_file("/etc/ld.so.cache", kMostCache);
  return !cache.ok() || cache->find(kLibrary) != std::string::npos;  // without a cache (musl, NixOS) only dlopen can tell
}

}  // namespace

GpuFacts probe_gpus(const ProbeRequest& request) {
  os::Mono end = os::mono_now() + std::max(kAtLeast, request.deadline - kForTheRest);
  auto left = [&] { return std::max(kAtLeast, std::chrono::duration_cast<milliseconds>(end - os::mono_now())); };
  // Starting the helper costs as much as the rest of the probe: a machine without anything of NVIDIA does not pay for it.
  GpuFacts seen;
  read_driver_files(request.root, seen);
  read_pci(request.root, seen);
  if (!has_nvidia(seen) && !library_in_reach(request)) return seen;
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

}  // namespace phalanx::machine
