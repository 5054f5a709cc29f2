// Is there a driver, is it whole, is it new enough.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::GpuFacts;

bool mismatch(const GpuFacts& g) {
  return g.nvml_error.find("version mismatch") != std::string::npos ||
         (!g.nvml_error.empty() && !g.driver.empty() && !g.kernel_module.empty() && g.driver != g.kernel_module);
}

// A container shows its host's PCI bus and /proc/driver/nvidia also when it was given no device.
void check_none(const Situation& s, size_t h, const HostView& host, Findings& f) {
  if (!s.job.wants_gpus) return;
  const GpuFacts& g = host.facts.gpus;
  bool container = !host.facts.machine.container.empty(), withheld = container && !g.kernel_module.empty();
  if (host.facts.machine.hostname.empty() || g.device_nodes > 0 || g.source == "nvml" || g.source == "nvidia-smi") return;
  if (!g.nvml_error.empty() || (g.pci_devices > 0 && !withheld)) return;
  if (withheld) f.on(h, tr("the machine has the NVIDIA driver, but this container has no GPU: /dev/nvidia0 is missing"));
  else f.on(h, tr("no NVIDIA device on the PCI bus, no /dev/nvidia0, no driver"));
}

void check_driver_down(const Situation& s, Findings& f) {
  if (!s.job.wants_gpus) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    if (g.pci_devices == 0 || g.source == "nvml" || g.source == "nvidia-smi" || !g.kernel_module.empty() || mismatch(g)) continue;
    bool container = !s.hosts[h].facts.machine.container.empty();
    bool nouveau = std::find(g.modules.begin(), g.modules.end(), "nouveau") != g.modules.end();
    Words why = nouveau ? tr("; the module nouveau is using them") : container ? tr("; this container has no devices") : Words{};
    f.on(h,
         tr("{} NVIDIA device{} on the PCI bus, but the nvidia driver is not loaded{}", g.pci_devices, g.pci_devices == 1 ? "" : "s", why),
         container ? "" : "sudo modprobe nvidia");
  }
}

void check_mismatch(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    if (!mismatch(g)) continue;
    f.on(h,
         g.driver.empty() || g.kernel_module.empty() ? tr("{}", g.nvml_error)
                                                     : tr("library {}, kernel module {}: {}", g.driver, g.kernel_module, g.nvml_error),
         "sudo reboot");
  }
}

void check_silent(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const GpuFacts& g = host.facts.gpus;
    std::string why = g.nvml_error;
    for (const machine::Gap& gap : host.facts.gaps)
      if (gap.part == "gpus" && !gap.doubtful) why = gap.why;
    bool present = g.pci_devices > 0 || g.device_nodes > 0 || !g.kernel_module.empty() || why != g.nvml_error;
    if (why.empty() || mismatch(g) || !present || (g.kernel_module.empty() && why == g.nvml_error)) continue;
    f.on(h, tr("the driver's library: {}", why), "timeout 20 nvidia-smi");
  }
}

void check_old(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const std::string& wanted = host.facts.software.torch_cuda;
    base::Result<int64_t> major = base::parse_int(std::string_view(wanted).substr(0, wanted.find('.')), 9, 99);
    int64_t has = host.facts.gpus.cuda_driver;
    if (!major.ok() || has <= 0 || *major <= has / 1000) continue;
    f.on(h, tr("torch is built for CUDA {}; driver {} supports CUDA up to {}.{}", wanted, host.facts.gpus.driver, has / 1000,
               has % 1000 / 10));
  }
}

void check_uvm(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    bool container = !s.hosts[h].facts.machine.container.empty();
    if (g.devices.empty() || g.device_nodes == 0 || g.uvm_node || (!container && g.modprobe)) continue;
    f.on(h,
         tr("/dev/nvidia-uvm is missing, but {} /dev/nvidia<N> exist{}", g.device_nodes,
            container ? tr("; a container cannot create it") : tr(", and nvidia-modprobe, which would create it, is missing")),
         container ? "" : "sudo modprobe nvidia_uvm");
  }
}

void check_fabric_manager(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    bool stopped = g.fabric_manager == "inactive" || g.fabric_manager == "missing";
    bool complete = std::any_of(g.devices.begin(), g.devices.end(), [](const machine::Gpu& d) { return d.fabric_state == 3; });
    if (!g.nvswitch || !stopped || complete || !s.hosts[h].facts.machine.container.empty()) continue;
    bool missing = g.fabric_manager == "missing";
    f.on(h,
         missing ? tr("NVSwitches are present, but nv-fabricmanager is not installed")
                 : tr("NVSwitches are present, but nv-fabricmanager is not running"),
         missing ? "" : "sudo systemctl enable --now nvidia-fabricmanager");
  }
}

void check_drivers_differ(const Situation& s, Findings& f) {
  std::vector<Camp> all = camps(s, [](const HostView& h) {
    const std::string& v = h.facts.gpus.driver;
    return h.facts.gpus.devices.empty() || v.empty() ? std::nullopt : std::optional(v);
  });
  for (size_t i = 1; i < all.size(); ++i)
    f.on(all[i].hosts,
         tr("driver {}; {} on {} host{}", all[i].value, all[0].value, all[0].hosts.size(), all[0].hosts.size() == 1 ? "" : "s"));
}

const Row kGpuDriverRows[] = {
    {"GPU-NONE", Severity::kError, check_none},
    {"GPU-DRIVER-DOWN", Severity::kError, check_driver_down},
    {"GPU-LIB-MISMATCH", Severity::kError, check_mismatch},
    {"GPU-DRIVER-SILENT", Severity::kWarning, check_silent},
    {"GPU-DRIVER-OLD", Severity::kError, check_old},
    {"GPU-UVM", Severity::kWarning, check_uvm},
    {"GPU-FABRIC-MANAGER", Severity::kError, check_fabric_manager},
    {"GPU-DRIVERS-DIFFER", Severity::kNote, check_drivers_differ},
};

}  // namespace

std::span<const Row> gpu_driver_rows() { return kGpuDriverRows; }

}  // namespace phalanx::doctor
