#include <algorithm>

#include "cases.h"

namespace phalanx::doctor::test {
namespace {

using machine::Gpu;

machine::GpuFacts& gpus(Situation& s, size_t h = 0) { return s.hosts[h].facts.gpus; }
Gpu& gpu(Situation& s, size_t g = 1, size_t h = 0) { return gpus(s, h).devices[g]; }

void no_gpus(Situation& s, size_t h) { gpus(s, h) = {}; }

void xid(Situation& s, int64_t number, const char* text, bool nvswitch = false) {
  gpus(s).xids = {{"0000:20:00.0", number, nvswitch, std::string(text), 3600}};
}

void use(Situation& s, const char* name, int64_t parent, int64_t mib, bool visible = true) {
  gpu(s).processes = {{4711, mib << 20, name, "anna", parent, 7200, visible}};
  gpu(s).memory_used_bytes = mib << 20;
}

std::vector<Case> silent_driver_cases() {
  return {
      hit("GPU-DRIVER-SILENT", "NVML hangs", single_machine,
          [](Situation& s) {
            gpus(s).source = "proc";
            gpus(s).nvml_error = "no answer for 1.2 s; its process is in state D, waiting in os_acquire_rwlock";
          }),
      miss("GPU-DRIVER-SILENT", "the machine was too busy to look", plain_ethernet,
           [](Situation& s) { s.hosts[0].facts.gaps.push_back({"gpus", "not finished after 2.8 s: the machine is busy", true}); }),
      hit("GPU-DRIVER-SILENT", "the look died in the library", plain_ethernet,
          [](Situation& s) { s.hosts[0].facts.gaps.push_back({"gpus", "gpus: killed by SIGSEGV"}); }),
      miss("GPU-DRIVER-SILENT", "a library without a driver or a card", plain_ethernet,
           [](Situation& s) { gpus(s).nvml_error = "Driver Not Loaded"; }),
  };
}

std::vector<Case> driver_cases() {
  return {
      hit("GPU-NONE", "one host of a GPU job has none", docker_host_network, [](Situation& s) { no_gpus(s, 1); }),
      hit("GPU-NONE", "a container without --gpus", docker_host_network,
          [](Situation& s) {
            no_gpus(s, 1);
            gpus(s, 1).pci_devices = 4;
            gpus(s, 1).kernel_module = "550.54.15";
            gpus(s, 1).source = "proc";
          }),
      miss("GPU-NONE", "a job that wants no GPU", docker_host_network,
           [](Situation& s) {
             no_gpus(s, 1);
             s.job.wants_gpus = false;
           }),
      hit("GPU-DRIVER-DOWN", "cards on the bus, no driver", single_machine,
          [](Situation& s) {
            no_gpus(s, 0);
            gpus(s).pci_devices = 2;
            gpus(s).modules = {"nouveau"};
          }),
      miss("GPU-DRIVER-DOWN", "the same machine for a job on the CPU", single_machine,
           [](Situation& s) {
             no_gpus(s, 0);
             gpus(s).pci_devices = 2;
             gpus(s).modules = {"nouveau"};
             s.job.wants_gpus = false;
           }),
      hit("GPU-LIB-MISMATCH", "NVML says so", single_machine,
          [](Situation& s) {
            gpus(s).source = "proc";
            gpus(s).nvml_error = "Driver/library version mismatch";
            gpus(s).driver = "550.90.07";
          }),
      miss("GPU-LIB-MISMATCH", "NVML answers", single_machine, [](Situation& s) { gpus(s).nvml_error = ""; }),
      hit("GPU-DRIVER-OLD", "CUDA 12 on an 11.4 driver", single_machine,
          [](Situation& s) {
            gpus(s).driver = gpus(s).kernel_module = "470.57.02";
            gpus(s).cuda_driver = 11040;
          }),
      miss("GPU-DRIVER-OLD", "CUDA 12.4 on a 12.2 driver", single_machine,
           [](Situation& s) {
             gpus(s).cuda_driver = 12020;
             s.hosts[0].facts.software.torch_cuda = "12.4";
           }),
      hit("GPU-UVM", "a container without the node", docker_host_network, [](Situation& s) { gpus(s).uvm_node = false; }),
      miss("GPU-UVM", "after boot, where nvidia-modprobe will make it", single_machine,
           [](Situation& s) {
             gpus(s).uvm_node = false;
             gpus(s).modprobe = true;
           }),
      hit("GPU-FABRIC-MANAGER", "stopped", bond_infiniband, [](Situation& s) { gpus(s, 2).fabric_manager = "inactive"; }),
      miss("GPU-FABRIC-MANAGER", "not seen, but the fabric is complete", bond_infiniband,
           [](Situation& s) {
             gpus(s, 2).fabric_manager = "inactive";
             for (Gpu& g : gpus(s, 2).devices) g.fabric_state = 3;
           }),
      hit("GPU-DRIVERS-DIFFER", "one of four", bond_infiniband, [](Situation& s) { gpus(s, 3).driver = "535.129.03"; }),
      miss("GPU-DRIVERS-DIFFER", "one is not known", bond_infiniband, [](Situation& s) { gpus(s, 3).driver.clear(); }),
  };
}

std::vector<Case> health_cases() {
  return {
      hit("GPU-LOST", "NVML says so", bond_infiniband, [](Situation& s) { gpu(s, 5, 1).fault = "GPU is lost"; }),
      hit("GPU-LOST", "its configuration space reads as ones", bond_infiniband,
          [](Situation& s) {
            gpus(s).lost = {"0000:60:00.0"};
            gpus(s).devices.erase(gpus(s).devices.begin() + 5);
          }),
      miss("GPU-LOST", "a card without a name", bond_infiniband, [](Situation& s) { gpu(s).name.clear(); }),
      hit("GPU-COUNT", "three on the bus, two known", single_machine, [](Situation& s) { gpus(s).pci_devices = 3; }),
      miss("GPU-COUNT", "a container that was given some of them", docker_host_network, [](Situation& s) { gpus(s).pci_devices = 8; }),
      hit("GPU-ECC", "one uncorrectable error", bond_infiniband, [](Situation& s) { gpu(s).ecc_volatile_uncorrected = 1; }),
      miss("GPU-ECC", "errors of the past only", bond_infiniband, [](Situation& s) { gpu(s).ecc_aggregate_uncorrected = 3; }),
      hit("GPU-REMAP-PENDING", "a row remapping is pending", bond_infiniband, [](Situation& s) { gpu(s).remap_pending = true; }),
      miss("GPU-REMAP-PENDING", "rows were remapped", bond_infiniband, [](Situation& s) { gpu(s).remapped_uncorrectable = 2; }),
      hit("GPU-REMAP-FAILED", "a remapping failed", bond_infiniband, [](Situation& s) { gpu(s).remap_failed = true; }),
      miss("GPU-REMAP-FAILED", "as many as allowed", bond_infiniband, [](Situation& s) { gpu(s).remapped_uncorrectable = 512; }),
      hit("GPU-NVLINK-DOWN", "one of twelve", bond_infiniband, [](Situation& s) { gpu(s).nvlinks[7].active = false; }),
      miss("GPU-NVLINK-DOWN", "cards without a bridge", single_machine,
           [](Situation& s) {
             for (Gpu& g : gpus(s).devices) g.nvlinks = {{0, false, 0, "", false}, {1, false, 0, "", false}};
           }),
      hit("GPU-NVLINK-ERRORS", "many", bond_infiniband, [](Situation& s) { gpu(s).nvlinks[3].errors = 50'000; }),
      miss("GPU-NVLINK-ERRORS", "some", bond_infiniband, [](Situation& s) { gpu(s).nvlinks[3].errors = 12; }),
  };
}

std::vector<Case> log_cases() {
  return {
      hit("GPU-XID-BUS", "79", single_machine,
          [](Situation& s) { xid(s, 79, "NVRM: Xid (PCI:0000:20:00): 79, GPU has fallen off the bus."); }),
      hit("GPU-XID-RECOVERY", "154", single_machine,
          [](Situation& s) {
            xid(s, 154, "NVRM: Xid (PCI:0000:20:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)");
          }),
      miss(
          "GPU-XID-RECOVERY", "154 that asks for nothing", single_machine,
          [](Situation& s) { xid(s, 154, "NVRM: Xid (PCI:0000:20:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)"); }),
      hit("GPU-XID-BUS", "110", single_machine, [](Situation& s) { xid(s, 110, "NVRM: Xid (PCI:0000:20:00): 110, pid=1, x"); }),
      miss("GPU-XID-NVLINK", "an error of NVLink 5 that is not fatal", single_machine,
           [](Situation& s) { xid(s, 145, "NVRM: Xid (PCI:0000:20:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 07"); }),
      miss("GPU-XID-BUS", "94", single_machine, [](Situation& s) { xid(s, 94, "NVRM: Xid (PCI:0000:20:00): 94, Contained: SM"); }),
      hit("GPU-XID-MEMORY", "94", single_machine, [](Situation& s) { xid(s, 94, "NVRM: Xid (PCI:0000:20:00): 94, Contained: SM"); }),
      miss("GPU-XID-MEMORY", "an SXid of the same number", bond_infiniband,
           [](Situation& s) { xid(s, 94, "nvidia-nvswitch0: SXid (PCI:0000:c0:00.0): 94", true); }),
      hit("GPU-XID-NVLINK", "a fatal SXid", bond_infiniband,
          [](Situation& s) { xid(s, 20034, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 32 LTSSM Fault Up", true); }),
      miss("GPU-XID-NVLINK", "an SXid that is not fatal", bond_infiniband,
           [](Situation& s) {
             xid(s, 12028, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error", true);
           }),
      hit("GPU-XID-FIRMWARE", "119", single_machine,
          [](Situation& s) { xid(s, 119, "NVRM: Xid (PCI:0000:20:00): 119, Timeout waiting for RPC from GSP!"); }),
      miss("GPU-XID-FIRMWARE", "a program's fault", single_machine,
           [](Situation& s) { xid(s, 31, "NVRM: Xid (PCI:0000:20:00): 31, MMU Fault"); }),
      hit("GPU-XID-PROGRAM", "31", single_machine, [](Situation& s) { xid(s, 31, "NVRM: Xid (PCI:0000:20:00): 31, MMU Fault"); }),
      miss("GPU-XID-PROGRAM", "79 is no program's", single_machine,
           [](Situation& s) { xid(s, 79, "NVRM: Xid (PCI:0000:20:00): 79, lost"); }),
  };
}

std::vector<Case> use_cases() {
  return {
      hit("GPU-BUSY", "somebody trains on it", single_machine, [](Situation& s) { use(s, "python3", 3000, 18'000); }),
      miss("GPU-BUSY", "a monitor's small context", single_machine, [](Situation& s) { use(s, "dcgm", 3000, 300); }),
      miss("GPU-BUSY", "on a card that the job does not use", single_machine,
           [](Situation& s) {
             use(s, "python3", 3000, 18'000);
             s.hosts[0].facts.software.environment["CUDA_VISIBLE_DEVICES"] = "0";
             s.hosts[0].ranks = 1;
           }),
      hit("GPU-ORPHAN", "python whose parent is gone", single_machine, [](Situation& s) { use(s, "python3", 1, 18'000); }),
      miss("GPU-ORPHAN", "a service of the system", single_machine, [](Situation& s) { use(s, "ollama", 1, 18'000); }),
      hit("GPU-MEMORY-HELD", "held from another pid namespace", docker_host_network, [](Situation& s) { use(s, "", 0, 9000, false); }),
      hit("GPU-MEMORY-HELD", "no process at all", docker_host_network, [](Situation& s) { gpu(s).memory_used_bytes = int64_t{9} << 30; }),
      miss("GPU-MEMORY-HELD", "what an old driver counts as used", docker_host_network,
           [](Situation& s) { gpu(s).memory_used_bytes = int64_t{700} << 20; }),
      hit("GPU-COMPUTE-MODE", "exclusive", single_machine, [](Situation& s) { gpu(s).compute_mode = "exclusive_process"; }),
      miss("GPU-COMPUTE-MODE", "not known", single_machine, [](Situation& s) { gpu(s).compute_mode = ""; }),
      hit("GPU-MIG", "on one card", bond_infiniband,
          [](Situation& s) {
            gpu(s).mig = true;
            gpu(s).mig_devices = {"MIG-1", "MIG-2"};
          }),
      miss("GPU-MIG", "off", bond_infiniband, [](Situation& s) { gpu(s).mig = false; }),
      hit("GPU-P2P-NONE", "consumer cards", single_machine, [](Situation&) {}),
      miss("GPU-P2P-NONE", "cards that can", docker_host_network, [](Situation&) {}),
      hit("GPU-P2P-FALSE", "RTX 4090 said to have P2P", single_machine,
          [](Situation& s) {
            for (Gpu& g : gpus(s).devices) g.name = "NVIDIA GeForce RTX 4090";
            gpus(s).pairs[0].p2p_read = gpus(s).pairs[0].p2p_write = "ok";
          }),
      miss("GPU-P2P-FALSE", "RTX 4090 said to have none", single_machine,
           [](Situation& s) {
             for (Gpu& g : gpus(s).devices) g.name = "NVIDIA GeForce RTX 4090";
           }),
      hit("GPU-P2P-NVLINK", "off between linked cards", bond_infiniband,
          [](Situation& s) { gpus(s).pairs[0].p2p_read = "disabled by regkey"; }),
      miss("GPU-P2P-NVLINK", "off between cards on PCIe", single_machine, [](Situation&) {}),
      hit("GPU-MODELS-DIFFER", "one host has others", bond_infiniband,
          [](Situation& s) {
            for (Gpu& g : gpus(s, 3).devices) g.name = "NVIDIA A100-SXM4-40GB", g.memory_bytes = int64_t{40} << 30;
          }),
      miss("GPU-MODELS-DIFFER", "a few MiB of ECC", docker_host_network,
           [](Situation& s) {
             for (Gpu& g : gpus(s, 1).devices) g.memory_bytes -= 300 << 20;
           }),
      hit("GPU-PERSISTENCE", "off", docker_host_network, [](Situation& s) { gpu(s).persistence = false; }),
      miss("GPU-PERSISTENCE", "off on the card of the screen", single_machine,
           [](Situation& s) {
             gpu(s).persistence = false;
             gpu(s).display_active = true;
           }),
      hit("GPU-ECC-DIFFERS", "off on one card", docker_host_network, [](Situation& s) { gpu(s).ecc = false; }),
      miss("GPU-ECC-DIFFERS", "off on all", docker_host_network,
           [](Situation& s) {
             for (HostView& h : s.hosts)
               for (Gpu& g : h.facts.gpus.devices) g.ecc = false;
           }),
  };
}

}  // namespace

std::vector<Case> gpu_cases() {
  std::vector<Case> all;
  for (auto* part : {driver_cases, silent_driver_cases, health_cases, log_cases, use_cases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
