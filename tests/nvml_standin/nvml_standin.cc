// A stand-in for libnvidia-ml.so.1: the public calls that the probe makes, answered from a description, nvml.txt beside the library.
// Structs are written down once more here, from nvml.h, and not shared with the helper: so a wrong layout on one side is seen.
//
// nvml.txt, a line each:  driver 535.129.03 | cuda 12020 | init CODE | hang CALL | crash CALL | process_words 3 or 4
//   gpu                         begins a GPU; then KEY VALUE lines of it: name, uuid, pci, cc 8.6, cores, memory (MiB), and any key below
//   process PID MIB | mig UUID | link N ACTIVE REMOTE|- KIND ERRORS     of the GPU above
//   p2p A B READ WRITE LEVEL    of two GPUs
// A key that is not given makes its call answer "not supported".
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

enum Return { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7 };

struct Link {
  unsigned active = 0, kind = 0;
  std::string remote;
  unsigned long long errors = 0;
};
struct Device {
  std::map<std::string, std::string> values;
  std::vector<std::pair<unsigned, unsigned long long>> processes;
  std::vector<std::string> migs;
  std::vector<Link> links;
  std::string mig_uuid;  // of a MIG device's own handle
  size_t index = 0;
};
struct Pair {
  unsigned read = 0, write = 0, level = 0;
};

struct Description {
  std::map<std::string, std::string> values;
  std::vector<Device*> devices;
  std::vector<Device*> mig_devices;
  std::map<std::pair<size_t, size_t>, Pair> pairs;
};

void read_line(Description& d, const std::string& line) {
  std::istringstream in(line);
  std::string key, rest;
  if (!(in >> key) || key[0] == '#') return;
  std::getline(in >> std::ws, rest);
  std::istringstream values(rest);
  Device* gpu = d.devices.empty() ? nullptr : d.devices.back();
  if (key == "gpu") {
    d.devices.push_back(new Device);
    d.devices.back()->index = d.devices.size() - 1;
  } else if (key == "p2p") {
    size_t a = 0, b = 0;
    Pair p;
    values >> a >> b >> p.read >> p.write >> p.level;
    d.pairs[{a, b}] = p;
  } else if (gpu && key == "process") {
    unsigned pid = 0;
    unsigned long long mib = 0;
    values >> pid >> mib;
    gpu->processes.emplace_back(pid, mib << 20);
  } else if (gpu && key == "mig") {
    gpu->migs.push_back(rest);
  } else if (gpu && key == "link") {
    Link l;
    unsigned number = 0;
    values >> number >> l.active >> l.remote >> l.kind >> l.errors;
    gpu->links.push_back(l);
  } else {
    (gpu ? gpu->values : d.values)[key] = rest;
  }
}

const Description& described() {
  static const Description* description = [] {
    auto* d = new Description;
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&read_line), &info);
    std::string folder = info.dli_fname ? info.dli_fname : "";
    std::ifstream in(folder.substr(0, folder.rfind('/') + 1) + "nvml.txt");
    for (std::string line; std::getline(in, line);) read_line(*d, line);
    return d;
  }();
  return *description;
}

std::string top(const std::string& key, const std::string& otherwise = "") {
  auto found = described().values.find(key);
  return found == described().values.end() ? otherwise : found->second;
}

// The place at which a driver that hangs or crashes does so.
void pass(const char* call) {
  if (top("crash") == call) std::abort();
  while (top("hang") == call) ::pause();
}

int number(const char* call, void* device, const char* key, unsigned* value) {
  pass(call);
  auto& values = static_cast<Device*>(device)->values;
  auto found = values.find(key);
  if (found == values.end()) return kNotSupported;
  *value = static_cast<unsigned>(std::strtoul(found->second.c_str(), nullptr, 0));
  return kSuccess;
}
unsigned long long wide(void* device, const char* key) {
  auto& values = static_cast<Device*>(device)->values;
  auto found = values.find(key);
  return found == values.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 0);
}
bool has(void* device, const char* key) { return static_cast<Device*>(device)->values.contains(key); }
int text(void* device, const char* key, char* out, unsigned size) {
  if (!has(device, key)) return kNotSupported;
  std::snprintf(out, size, "%s", static_cast<Device*>(device)->values[key].c_str());
  return kSuccess;
}

struct PciInfo {  // nvmlPciInfo_t
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(PciInfo) == 68);
int fill_pci(const std::string& address, PciInfo* pci) {
  if (std::sscanf(address.c_str(), "%x:%x:%x.0", &pci->domain, &pci->bus, &pci->device) != 3) return kNotSupported;
  std::snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
  return kSuccess;
}

struct ProcessV1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long usedGpuMemory;
};
struct ProcessV2 {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct ProcessWithProtected {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};
template <typename P>
int fill_processes(void* device, unsigned* count, void* out) {
  auto& list = static_cast<Device*>(device)->processes;
  if (*count < list.size()) return kInsufficientSize;
  *count = static_cast<unsigned>(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    P p{};
    p.pid = list[i].first;
    p.usedGpuMemory = list[i].second;
    std::memcpy(static_cast<char*>(out) + i * sizeof(P), &p, sizeof(P));
  }
  return kSuccess;
}

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char clusterUuid[16];
  int status;
  unsigned cliqueId;
  unsigned char state;
};

}  // namespace

#define API extern "C" __attribute__((visibility("default")))
#define NUMBER(name, key) \
  API int name(void* device, unsigned* value) { return number(#name, device, key, value); }
#define CHOICE(name, choice, key) \
  API int name(void* device, int which, unsigned* value) { return which == choice ? number(#name, device, key, value) : kInvalidArgument; }

#ifdef OLD_API
#define VERSIONED(newer, older) older
#else
#define VERSIONED(newer, older) newer
#endif

API int VERSIONED(nvmlInit_v2, nvmlInit)() {
  pass("nvmlInit");
  return std::atoi(top("init", "0").c_str());
}
API const char* nvmlErrorString(int code) {
  switch (code) {
    case 0: return "Success";
    case 3: return "Not Supported";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}
API int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  std::snprintf(out, size, "%s", top("driver").c_str());
  return kSuccess;
}
API int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = std::atoi(top("cuda", "0").c_str());
  return kSuccess;
}
API int VERSIONED(nvmlDeviceGetCount_v2, nvmlDeviceGetCount)(unsigned* count) {
  pass("nvmlDeviceGetCount");
  *count = static_cast<unsigned>(described().devices.size());
  return kSuccess;
}
API int VERSIONED(nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex)(unsigned index, void** device) {
  pass("nvmlDeviceGetHandleByIndex");
  if (index >= described().devices.size()) return kInvalidArgument;
  *device = described().devices[index];
  return has(*device, "handle") ? static_cast<int>(wide(*device, "handle")) : kSuccess;
}
API int nvmlDeviceGetName(void* device, char* out, unsigned size) {
  pass("nvmlDeviceGetName");
  if (has(device, "lost")) return 15;
  return text(device, "name", out, size);
}
API int nvmlDeviceGetUUID(void* device, char* out, unsigned size) { return text(device, "uuid", out, size); }
API int VERSIONED(nvmlDeviceGetPciInfo_v3, nvmlDeviceGetPciInfo)(void* device, PciInfo* pci) {
  return fill_pci(static_cast<Device*>(device)->values["pci"], pci);
}
API int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  return has(device, "cc") && std::sscanf(static_cast<Device*>(device)->values["cc"].c_str(), "%d.%d", major, minor) == 2 ? kSuccess
                                                                                                                          : kNotSupported;
}
API int nvmlDeviceGetMemoryInfo(void* device, Memory* m) {
  pass("nvmlDeviceGetMemoryInfo");
  m->total = wide(device, "memory") << 20;
  m->used = wide(device, "used") << 20;
  m->free = m->total - m->used;
  return kSuccess;
}
#ifndef OLD_API
API int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* m) {
  pass("nvmlDeviceGetMemoryInfo");
  if (m->version != (sizeof(MemoryV2) | 2u << 24)) return 25;
  m->total = wide(device, "memory") << 20;
  m->used = wide(device, "used") << 20;
  m->reserved = wide(device, "reserved") << 20;
  m->free = m->total - m->used - m->reserved;
  return kSuccess;
}
NUMBER(nvmlDeviceGetNumGpuCores, "cores")
NUMBER(nvmlDeviceGetNumaNodeId, "numa")
API int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* out) {
  if (top("process_words") == "4") return fill_processes<ProcessWithProtected>(device, count, out);
  return fill_processes<ProcessV2>(device, count, out);
}
API int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number("nvmlDeviceGetMigMode", device, "mig_mode", current);
}
API int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return kSuccess;
}
API int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** mig) {
  auto& migs = static_cast<Device*>(device)->migs;
  if (index >= migs.size()) return kNotFound;
  auto* handle = new Device;
  handle->values["uuid"] = migs[index];
  *mig = handle;
  return kSuccess;
}
API int nvmlDeviceGetRemappedRows(void* device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending, unsigned* failed) {
  if (!has(device, "remap")) return kNotSupported;
  std::istringstream(static_cast<Device*>(device)->values["remap"]) >> *correctable >> *uncorrectable >> *pending >> *failed;
  return kSuccess;
}
API int nvmlDeviceGetGpuFabricInfo(void* device, FabricInfo* info) {
  if (!has(device, "fabric")) return kNotSupported;
  info->state = static_cast<unsigned char>(wide(device, "fabric"));
  return kSuccess;
}
#else
API int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* out) {
  return fill_processes<ProcessV1>(device, count, out);
}
#endif
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetDisplayActive, "display")
NUMBER(nvmlDeviceGetPowerUsage, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default")
NUMBER(nvmlDeviceGetPcieReplayCounter, "replays")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
CHOICE(nvmlDeviceGetTemperature, 0, "temperature")
CHOICE(nvmlDeviceGetClockInfo, 1, "clock_sm")
CHOICE(nvmlDeviceGetMaxClockInfo, 1, "clock_sm_max")
CHOICE(nvmlDeviceGetApplicationsClock, 1, "clock_application")
CHOICE(nvmlDeviceGetDefaultApplicationsClock, 1, "clock_application_default")
API int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  *bits = wide(device, "throttle");
  return has(device, "throttle") ? kSuccess : kNotSupported;
}
API int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[1] = 0;
  return number("nvmlDeviceGetUtilizationRates", device, "utilization", rates);
}
API int nvmlDeviceGetEccMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number("nvmlDeviceGetEccMode", device, "ecc", current);
}
API int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  const char* key = counter == 0 ? "ecc_volatile" : "ecc_aggregate";
  if (type != 1 || !has(device, key)) return kNotSupported;
  *count = wide(device, key);
  return kSuccess;
}
API int nvmlDeviceGetRetiredPages(void* device, int cause, unsigned* count, unsigned long long* addresses) {
  if (!has(device, "retired")) return kNotSupported;
  unsigned all = cause == 1 ? static_cast<unsigned>(wide(device, "retired")) : 0;
  bool fits = addresses && *count >= all;
  *count = all;
  return fits || all == 0 ? kSuccess : kInsufficientSize;
}
API int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  pass("nvmlDeviceGetNvLinkState");
  auto& links = static_cast<Device*>(device)->links;
  if (link >= links.size()) return kInvalidArgument;
  *active = links[link].active;
  return kSuccess;
}
API int VERSIONED(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDeviceGetNvLinkRemotePciInfo)(void* device, unsigned link, PciInfo* pci) {
  return fill_pci(static_cast<Device*>(device)->links.at(link).remote, pci);
}
API int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* kind) {
  *kind = static_cast<Device*>(device)->links.at(link).kind;
  return kSuccess;
}
API int nvmlDeviceGetNvLinkErrorCounter(void* device, unsigned link, int counter, unsigned long long* value) {
  *value = counter == 0 ? static_cast<Device*>(device)->links.at(link).errors : 0;
  return kSuccess;
}
API int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, unsigned* status) {
  auto found = described().pairs.find({static_cast<Device*>(a)->index, static_cast<Device*>(b)->index});
  if (found == described().pairs.end() || capability > 1) return kNotSupported;
  *status = capability == 0 ? found->second.read : found->second.write;
  return kSuccess;
}
API int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, unsigned* level) {
  auto found = described().pairs.find({static_cast<Device*>(a)->index, static_cast<Device*>(b)->index});
  if (found == described().pairs.end()) return kNotSupported;
  *level = found->second.level;
  return kSuccess;
}
