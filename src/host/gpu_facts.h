// GPUs of one machine: from NVML (by the helper program, gpu_nvml.h), from nvidia-smi where NVML cannot be used, and from
// /proc, /sys and the kernel log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace host {

struct GpuProcess {
  int64_t pid = 0;
  int64_t used_bytes = 0;
  std::string name;  // comm, empty when the pid is not visible (another pid namespace)
  std::string user;
  int64_t parent = 0;  // 1: an orphan
  int64_t age_s = 0;
  bool visible = false;  // /proc/<pid> exists here
};
template <typename V>
void fields(V& v, GpuProcess& f) {
  v("pid", f.pid);
  v("used_bytes", f.used_bytes);
  v("name", f.name);
  v("user", f.user);
  v("parent", f.parent);
  v("age_s", f.age_s);
  v("visible", f.visible);
}

// One hop of a device's PCIe path, the device itself first, then the bridges above it.
struct PcieLink {
  std::string address;           // "0000:3b:00.0"
  std::string speed, max_speed;  // GT/s as text of sysfs: "16.0 GT/s PCIe"
  int64_t width = 0, max_width = 0;
  bool acs_redirects = false;  // ACS source validation or P2P redirection is on (bridges)
};
template <typename V>
void fields(V& v, PcieLink& f) {
  v("address", f.address);
  v("speed", f.speed);
  v("max_speed", f.max_speed);
  v("width", f.width);
  v("max_width", f.max_width);
  v("acs_redirects", f.acs_redirects);
}

struct NvLink {
  int64_t link = 0;
  bool active = false;
  int64_t errors = 0;  // replay + recovery + CRC
};
template <typename V>
void fields(V& v, NvLink& f) {
  v("link", f.link);
  v("active", f.active);
  v("errors", f.errors);
}

struct Gpu {
  int64_t index = 0;                   // NVML's and nvidia-smi's: PCI bus order
  std::string name;                    // "NVIDIA GeForce RTX 3090"
  std::string uuid;                    // "GPU-…"
  std::string pci;                     // "0000:3b:00.0", lower case
  int64_t cc_major = 0, cc_minor = 0;  // compute capability
  int64_t sm_count = 0;                // multiprocessors, 0: unknown
  int64_t memory_bytes = 0, memory_used_bytes = 0;
  int64_t numa_node = -1;
  std::string local_cpus;  // cpulist near it
  std::string fault;       // NVML's word when the device cannot be asked: "GPU is lost"
  std::optional<bool> persistence;
  std::string compute_mode;  // "default", "exclusive_process", "prohibited"
  std::optional<bool> mig;
  std::vector<std::string> mig_devices;  // uuids
  std::optional<bool> ecc;               // on
  std::optional<int64_t> ecc_volatile_uncorrected, ecc_aggregate_uncorrected;
  std::optional<int64_t> remapped_correctable, remapped_uncorrectable;
  bool remap_pending = false, remap_failed = false;
  std::optional<int64_t> retired_pages;
  std::optional<bool> display_active;
  std::optional<int64_t> temperature_c, power_mw, power_limit_mw, power_limit_default_mw;
  std::optional<int64_t> clock_sm_mhz, clock_sm_max_mhz, clock_application_mhz, clock_application_default_mhz;
  std::optional<int64_t> throttle_reasons;  // nvmlClocksThrottleReason* bits
  std::optional<int64_t> utilization_percent;
  std::optional<int64_t> pcie_replays;
  std::vector<PcieLink> pcie;  // device first, then bridges upwards
  std::vector<NvLink> nvlinks;
  std::vector<GpuProcess> processes;
};
template <typename V>
void fields(V& v, Gpu& f) {
  v("index", f.index);
  v("name", f.name);
  v("uuid", f.uuid);
  v("pci", f.pci);
  v("cc_major", f.cc_major);
  v("cc_minor", f.cc_minor);
  v("sm_count", f.sm_count);
  v("memory_bytes", f.memory_bytes);
  v("memory_used_bytes", f.memory_used_bytes);
  v("numa_node", f.numa_node);
  v("local_cpus", f.local_cpus);
  v("fault", f.fault);
  v("persistence", f.persistence);
  v("compute_mode", f.compute_mode);
  v("mig", f.mig);
  v("mig_devices", f.mig_devices);
  v("ecc", f.ecc);
  v("ecc_volatile_uncorrected", f.ecc_volatile_uncorrected);
  v("ecc_aggregate_uncorrected", f.ecc_aggregate_uncorrected);
  v("remapped_correctable", f.remapped_correctable);
  v("remapped_uncorrectable", f.remapped_uncorrectable);
  v("remap_pending", f.remap_pending);
  v("remap_failed", f.remap_failed);
  v("retired_pages", f.retired_pages);
  v("display_active", f.display_active);
  v("temperature_c", f.temperature_c);
  v("power_mw", f.power_mw);
  v("power_limit_mw", f.power_limit_mw);
  v("power_limit_default_mw", f.power_limit_default_mw);
  v("clock_sm_mhz", f.clock_sm_mhz);
  v("clock_sm_max_mhz", f.clock_sm_max_mhz);
  v("clock_application_mhz", f.clock_application_mhz);
  v("clock_application_default_mhz", f.clock_application_default_mhz);
  v("throttle_reasons", f.throttle_reasons);
  v("utilization_percent", f.utilization_percent);
  v("pcie_replays", f.pcie_replays);
  v("pcie", f.pcie);
  v("nvlinks", f.nvlinks);
  v("processes", f.processes);
}

// A pair of GPUs of one machine.
struct GpuPair {
  int64_t a = 0, b = 0;  // indices
  std::string p2p_read;  // "ok", "chipset not supported", "disabled by regkey", …; NVML's GPU P2P status
  std::string p2p_write;
  std::string path;  // "NV4", "PIX", "PXB", "PHB", "NODE", "SYS"
};
template <typename V>
void fields(V& v, GpuPair& f) {
  v("a", f.a);
  v("b", f.b);
  v("p2p_read", f.p2p_read);
  v("p2p_write", f.p2p_write);
  v("path", f.path);
}

// A line of the kernel's log about a GPU or NVSwitch.
struct Xid {
  std::string pci;
  int64_t xid = 0;
  bool nvswitch = false;  // an SXid
  std::string line;
  int64_t age_s = -1;  // before the probe; -1: unknown
};
template <typename V>
void fields(V& v, Xid& f) {
  v("pci", f.pci);
  v("xid", f.xid);
  v("nvswitch", f.nvswitch);
  v("line", f.line);
  v("age_s", f.age_s);
}

struct GpuFacts {
  std::string source;                // "nvml", "nvidia-smi", "proc", empty: no NVIDIA GPU and no driver seen
  std::string nvml_error;            // why NVML could not be used: "Driver/library version mismatch"
  std::string driver;                // user space: "535.129.03"
  std::string kernel_module;         // /proc/driver/nvidia/version
  bool open_module = false;          // the open kernel module
  int64_t cuda_driver = 0;           // 12020 for 12.2
  int64_t pci_devices = 0;           // NVIDIA display controllers on the PCI bus
  int64_t device_nodes = 0;          // /dev/nvidia0…
  bool uvm_node = false;             // /dev/nvidia-uvm
  std::vector<std::string> modules;  // loaded: nvidia, nvidia_uvm, nvidia_peermem, nouveau …
  std::string fabric_manager;        // "", "active", "inactive", "missing" (only looked for with NVSwitch)
  bool nvswitch = false;
  bool iommu_translates = false;  // IOMMU on and not in pass-through
  std::vector<Gpu> devices;       // by index
  std::vector<GpuPair> pairs;
  std::vector<Xid> xids;   // newest last, at most 64
  std::string kernel_log;  // why the kernel log could not be read; empty: it was
};
template <typename V>
void fields(V& v, GpuFacts& f) {
  v("source", f.source);
  v("nvml_error", f.nvml_error);
  v("driver", f.driver);
  v("kernel_module", f.kernel_module);
  v("open_module", f.open_module);
  v("cuda_driver", f.cuda_driver);
  v("pci_devices", f.pci_devices);
  v("device_nodes", f.device_nodes);
  v("uvm_node", f.uvm_node);
  v("modules", f.modules);
  v("fabric_manager", f.fabric_manager);
  v("nvswitch", f.nvswitch);
  v("iommu_translates", f.iommu_translates);
  v("devices", f.devices);
  v("pairs", f.pairs);
  v("xids", f.xids);
  v("kernel_log", f.kernel_log);
}

}  // namespace host
