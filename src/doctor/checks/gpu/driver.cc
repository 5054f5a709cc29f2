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
void check_none(const Situation& s, Findings& f) {
  if (!s.job.wants_gpus) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const GpuFacts& g = host.facts.gpus;
    bool container = !host.facts.machine.container.empty(), withheld = container && !g.kernel_module.empty();
    if (!host.probed || host.facts.machine.hostname.empty() || g.device_nodes > 0 || g.source == "nvml" || g.source == "nvidia-smi")
      continue;
    if (!g.nvml_error.empty() || (g.pci_devices > 0 && !withheld)) continue;
    if (withheld)
      f.on(h, {"the machine has the NVIDIA driver, but this container has no GPU: /dev/nvidia0 is missing",
               "宿主机有 NVIDIA 驱动，但容器没有分到 GPU：没有 /dev/nvidia0"});
    else
      f.on(h, {"no NVIDIA device on the PCI bus, no /dev/nvidia0, no driver", "PCI 总线上没有 NVIDIA 设备，没有 /dev/nvidia0，也没有驱动"});
  }
}

void check_driver_down(const Situation& s, Findings& f) {
  if (!s.job.wants_gpus) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    if (g.pci_devices == 0 || g.source == "nvml" || g.source == "nvidia-smi" || !g.kernel_module.empty() || mismatch(g)) continue;
    bool container = !s.hosts[h].facts.machine.container.empty();
    bool nouveau = std::find(g.modules.begin(), g.modules.end(), "nouveau") != g.modules.end();
    std::string why = nouveau ? "; the module nouveau is using them" : container ? "; this container has no devices" : "";
    std::string zh = nouveau ? "；设备被 nouveau 模块占用" : container ? "；容器没有分到设备" : "";
    f.on(h,
         {fmt::format("{} NVIDIA device{} on the PCI bus, but the nvidia driver is not loaded{}", g.pci_devices,
                      g.pci_devices == 1 ? "" : "s", why),
          fmt::format("PCI 总线上有 {} 个 NVIDIA 设备，但 nvidia 驱动没有加载{}", g.pci_devices, zh)},
         container ? "" : "sudo modprobe nvidia");
  }
}

void check_mismatch(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    if (!mismatch(g)) continue;
    std::string versions = g.driver.empty() || g.kernel_module.empty()
                               ? g.nvml_error
                               : fmt::format("library {}, kernel module {}: {}", g.driver, g.kernel_module, g.nvml_error);
    std::string zh = g.driver.empty() || g.kernel_module.empty()
                         ? g.nvml_error
                         : fmt::format("用户态库 {}，内核模块 {}：{}", g.driver, g.kernel_module, g.nvml_error);
    f.on(h, {versions, zh}, "sudo reboot");
  }
}

void check_silent(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const GpuFacts& g = host.facts.gpus;
    std::string why = g.nvml_error;
    for (const machine::Gap& gap : host.facts.gaps)
      if (gap.part == "gpus") why = gap.why;
    bool present = g.pci_devices > 0 || g.device_nodes > 0 || !g.kernel_module.empty() || why != g.nvml_error;
    if (why.empty() || mismatch(g) || !present || (g.kernel_module.empty() && why == g.nvml_error)) continue;
    f.on(h, {fmt::format("the driver's library: {}", why), fmt::format("驱动库：{}", why)}, "timeout 20 nvidia-smi");
  }
}

void check_old(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const std::string& wanted = host.facts.software.torch_cuda;
    base::Result<int64_t> major = base::parse_int(std::string_view(wanted).substr(0, wanted.find('.')), 9, 99);
    int64_t has = host.facts.gpus.cuda_driver;
    if (!major.ok() || has <= 0 || *major <= has / 1000) continue;
    f.on(h, {fmt::format("torch is built for CUDA {}; driver {} supports CUDA up to {}.{}", wanted, host.facts.gpus.driver, has / 1000,
                         has % 1000 / 10),
             fmt::format("torch 按 CUDA {} 编译，而驱动 {} 最高支持 CUDA {}.{}", wanted, host.facts.gpus.driver, has / 1000,
                         has % 1000 / 10)});
  }
}

void check_uvm(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    bool container = !s.hosts[h].facts.machine.container.empty();
    if (g.devices.empty() || g.device_nodes == 0 || g.uvm_node || (!container && g.modprobe)) continue;
    f.on(h,
         {fmt::format("/dev/nvidia-uvm is missing, but {} /dev/nvidia<N> exist{}", g.device_nodes,
                      container ? "; a container cannot create it" : ", and nvidia-modprobe, which would create it, is missing"),
          fmt::format("有 {} 个 /dev/nvidia<N>，却没有 /dev/nvidia-uvm{}", g.device_nodes,
                      container ? "；容器内无法自行创建" : "，也没有 nvidia-modprobe 可以创建它")},
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
         {missing ? "NVSwitches are present, but nv-fabricmanager is not installed"
                  : "NVSwitches are present, but nv-fabricmanager is not running",
          missing ? "有 NVSwitch，但没有安装 nv-fabricmanager" : "有 NVSwitch，但 nv-fabricmanager 没有运行"},
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
         {fmt::format("driver {}; {} on {} host{}", all[i].value, all[0].value, all[0].hosts.size(), all[0].hosts.size() == 1 ? "" : "s"),
          fmt::format("驱动 {}，而另外 {} 台主机是 {}", all[i].value, all[0].hosts.size(), all[0].value)});
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
