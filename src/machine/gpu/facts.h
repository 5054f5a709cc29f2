// GPUs of one machine: from NVML (by the helper program, machine/gpu/nvml_reader.c), from nvidia-smi where NVML cannot be used, and from
// /proc, /sys and the kernel log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "machine/gpu/part_facts.h"

namespace phalanx::machine {

struct Gpu {
  int64_t index = 0;                   // NVML's and nvidia-smi's: PCI bus order
  std::string name;                    // "NVIDIA GeForce RTX 3090"
  std::string uuid;                    // "GPU-…"
  std::string pci;                     // "0000:3b:00.0", lower case
  int64_t cc_major = 0, cc_minor = 0;  // compute capability
  int64_t sm_count = 0;                // multiprocessors, 0: unknown
  int64_t memory_bytes = 0, memory_used_bytes = 0;
  std::optional<int64_t> memory_reserved_bytes;  // by the driver, not part of used; none: a driver that counts it as used
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
  std::optional<int64_t> fabric_state;  // 0 no fabric, 1 not started, 2 in progress, 3 completed (Hopper and newer)
  std::vector<PcieLink> pcie;           // device first, then bridges upwards
  std::vector<NvLink> nvlinks;
  std::vector<GpuProcess> processes;
};
PHALANX_FIELDS(Gpu, index, name, uuid, pci, cc_major, cc_minor, sm_count, memory_bytes, memory_used_bytes, memory_reserved_bytes, numa_node,
               local_cpus, fault, persistence, compute_mode, mig, mig_devices, ecc, ecc_volatile_uncorrected, ecc_aggregate_uncorrected,
               remapped_correctable, remapped_uncorrectable, remap_pending, remap_failed, retired_pages, display_active, temperature_c,
               power_mw, power_limit_mw, power_limit_default_mw, clock_sm_mhz, clock_sm_max_mhz, clock_application_mhz,
               clock_application_default_mhz, throttle_reasons, utilization_percent, pcie_replays, fabric_state, pcie, nvlinks, processes);

struct GpuFacts {
  std::string source;                // "nvml", "nvidia-smi", "proc", empty: no NVIDIA GPU and no driver seen
  std::string nvml_error;            // why NVML could not be used: "Driver/library version mismatch"
  std::string driver;                // user space: "535.129.03"
  std::string kernel_module;         // /proc/driver/nvidia/version
  bool open_module = false;          // the open kernel module
  int64_t cuda_driver = 0;           // 12020 for 12.2
  int64_t pci_devices = 0;           // NVIDIA display controllers on the PCI bus, those handed to virtual machines (vfio-pci) left out
  std::vector<std::string> lost;     // PCI addresses of those that answer no more: their configuration space reads as ones
  int64_t device_nodes = 0;          // /dev/nvidia0…
  bool uvm_node = false;             // /dev/nvidia-uvm
  bool modprobe = false;             // nvidia-modprobe is installed with the setuid bit: CUDA makes missing nodes itself
  bool own_pids = false;             // this is not the machine's first pid namespace: other processes cannot be seen
  std::vector<std::string> modules;  // loaded: nvidia, nvidia_uvm, nvidia_peermem, nouveau …
  std::string fabric_manager;        // "", "active", "inactive", "missing" (only looked for with NVSwitch)
  bool nvswitch = false;
  bool iommu_translates = false;  // IOMMU on and not in pass-through
  std::vector<Gpu> devices;       // by index
  std::vector<GpuPair> pairs;
  std::vector<Xid> xids;   // newest last, at most 64
  std::string kernel_log;  // why the kernel log could not be read; empty: it was
};
PHALANX_FIELDS(GpuFacts, source, nvml_error, driver, kernel_module, open_module, cuda_driver, pci_devices, lost, device_nodes, uvm_node,
               modprobe, own_pids, modules, fabric_manager, nvswitch, iommu_translates, devices, pairs, xids, kernel_log);

}  // namespace phalanx::machine
