// Is there a driver, is it whole, is it new enough.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/examine.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::GpuFacts;

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
      f.on(h, {"the machine has the NVIDIA driver, but this container was given no GPU: there is no /dev/nvidia0",
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
    std::string why = nouveau ? "; the module nouveau holds them" : container ? "; this container was given no device" : "";
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
    for (const host::Gap& gap : host.facts.gaps)
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
    f.on(h, {fmt::format("torch is built for CUDA {}; driver {} knows CUDA up to {}.{}", wanted, host.facts.gpus.driver, has / 1000,
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
         {fmt::format("/dev/nvidia-uvm is missing beside {} /dev/nvidia<N>{}", g.device_nodes,
                      container ? "; a container cannot make it" : ", and no nvidia-modprobe that would make it"),
          fmt::format("有 {} 个 /dev/nvidia<N>，却没有 /dev/nvidia-uvm{}", g.device_nodes,
                      container ? "；容器内无法自行创建" : "，也没有 nvidia-modprobe 可以创建它")},
         container ? "" : "sudo modprobe nvidia_uvm");
  }
}

void check_fabric_manager(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    bool stopped = g.fabric_manager == "inactive" || g.fabric_manager == "missing";
    bool complete = std::any_of(g.devices.begin(), g.devices.end(), [](const host::Gpu& d) { return d.fabric_state == 3; });
    if (!g.nvswitch || !stopped || complete || !s.hosts[h].facts.machine.container.empty()) continue;
    bool missing = g.fabric_manager == "missing";
    f.on(h,
         {missing ? "NVSwitches are here and nv-fabricmanager is not installed" : "NVSwitches are here and nv-fabricmanager does not run",
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
    {"GPU-NONE",
     Severity::kError,
     Group::kGpu,
     {"no GPU on this host", "这台主机上没有 GPU"},
     {"Does every host of a GPU job have an NVIDIA GPU?", "GPU 任务的每台主机都有 NVIDIA GPU 吗？"},
     {"Every rank of the job needs a GPU. Without one PyTorch says \"Found no NVIDIA driver on your system\" or \"ProcessGroupNCCL is only "
      "supported "
      "with GPUs, no GPUs found!\", and the ranks of the other hosts wait for this one.\nIn a container it mostly means that it was "
      "started without "
      "--gpus.",
      "任务的每个 rank 都需要一块 GPU。没有 GPU 时 PyTorch 会报 \"Found no NVIDIA driver on your system\" 或 \"ProcessGroupNCCL is only "
      "supported with "
      "GPUs, no GPUs found!\"，而其他主机上的 rank 会一直等它。\n如果在容器里，多半是启动时没有加 --gpus。"},
     {"Leave the host out, or give the container its GPUs:\n$ docker run --gpus all --ipc=host …",
      "把这台主机从列表中去掉，或者给容器分配 GPU：\n$ docker run --gpus all --ipc=host …"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp",
     check_none},
    {"GPU-DRIVER-DOWN",
     Severity::kError,
     Group::kGpu,
     {"the NVIDIA driver is not loaded", "NVIDIA 驱动没有加载"},
     {"Is the kernel driver loaded for the GPUs on the PCI bus?", "PCI 总线上的 GPU 是否已加载内核驱动？"},
     {"The cards are there, but nothing drives them: nvidia-smi says \"NVIDIA-SMI has failed because it couldn't communicate with the "
      "NVIDIA driver\" and "
      "CUDA \"no CUDA-capable device is detected\". Usual causes: a kernel update without the driver's DKMS build, Secure Boot refusing "
      "the module, nouveau.",
      "卡在，但没有驱动：nvidia-smi 报 \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\"，CUDA 报 \"no "
      "CUDA-capable device is "
      "detected\"。常见原因：升级内核后 DKMS 没有重新编译驱动、Secure Boot 拒绝加载模块、被 nouveau 占用。"},
     {"Load it, and read why it will not:\n$ sudo modprobe nvidia && nvidia-smi\n$ sudo dmesg | grep -iE 'nvidia|NVRM|nouveau' | tail -20",
      "加载驱动；如果失败，看内核日志里的原因：\n$ sudo modprobe nvidia && nvidia-smi\n$ sudo dmesg | grep -iE 'nvidia|NVRM|nouveau' | "
      "tail -20"},
     "",
     check_driver_down},
    {"GPU-LIB-MISMATCH",
     Severity::kError,
     Group::kGpu,
     {"driver library and kernel module are of different versions", "驱动库与内核模块版本不一致"},
     {"Are the driver's user-space libraries and its kernel module of one version?", "驱动的用户态库与内核模块是同一版本吗？"},
     {"The driver package was updated and the old module is still loaded. Everything fails at once: \"Failed to initialize NVML: "
      "Driver/library version "
      "mismatch\", CUDA error 803 \"system has unsupported display driver / cuda driver combination\", and in the kernel log \"NVRM: API "
      "mismatch\". "
      "Unattended upgrades do this overnight.",
      "驱动包升级了，但内核里还是旧模块，因此一切 GPU 调用都会立刻失败：\"Failed to initialize NVML: Driver/library version "
      "mismatch\"、CUDA 错误 803，内核日志里有 "
      "\"NVRM: API mismatch\"。无人值守的自动升级常在夜里造成这种情况。"},
     {"Reboot, or unload the module when nothing uses it:\n$ sudo reboot\n$ sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && "
      "nvidia-smi\nA container "
      "started before the update must be started again.",
      "重启；或在没有进程占用时卸载旧模块：\n$ sudo reboot\n$ sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && "
      "nvidia-smi\n升级之前启动的容器也要重新启动。"},
     "NCCL src/misc/nvmlwrap.cc",
     check_mismatch},
    {"GPU-DRIVER-SILENT",
     Severity::kWarning,
     Group::kGpu,
     {"the GPU driver does not answer as it should", "GPU 驱动没有正常应答"},
     {"Does NVML answer within the probe's deadline, without an error?", "NVML 能否在探测时限内正常应答？"},
     {"The driver's library hung, crashed or reported an error. A rank that calls CUDA may hang the same way. Two causes are common: a GPU "
      "that is being lost "
      "(nvidia-smi hangs too, the kernel log has Xid lines), and GPUs that must be initialised on every call because persistence mode is "
      "off, which takes "
      "seconds per card.",
      "驱动库卡住、崩溃或者报错，rank 调用 CUDA 时可能同样卡住。常见原因有两个：某块 GPU 正在掉卡（nvidia-smi 也会卡住，内核日志里有 "
      "Xid）；或者没有开启持久模式，每次调用都要"
      "重新初始化 GPU，每块卡要几秒钟。"},
     {"Look whether it is slow or stuck:\n$ time timeout 60 nvidia-smi\n$ sudo dmesg | grep -i xid | tail\nIf it was only slow:\n$ sudo "
      "nvidia-smi -pm 1",
      "先看是慢还是卡死：\n$ time timeout 60 nvidia-smi\n$ sudo dmesg | grep -i xid | tail\n如果只是慢：\n$ sudo nvidia-smi -pm 1"},
     "",
     check_silent},
    {"GPU-DRIVER-OLD",
     Severity::kError,
     Group::kGpu,
     {"the driver is too old for torch's CUDA", "驱动太旧，不支持 torch 的 CUDA 版本"},
     {"Does the driver know the CUDA major version that torch was built with?", "驱动是否支持 torch 编译所用的 CUDA 大版本？"},
     {"CUDA refuses to start: \"The NVIDIA driver on your system is too old (found version 11040)\", \"CUDA driver version is insufficient "
      "for CUDA runtime "
      "version\" (35). Within a major version newer toolkits run on older drivers (CUDA 12.4 on a 12.2 driver is fine); across major "
      "versions they do not.",
      "CUDA 无法初始化：\"The NVIDIA driver on your system is too old (found version 11040)\"、\"CUDA driver version is insufficient for "
      "CUDA runtime version\" (35)。"
      "同一大版本内新工具包可以跑在旧驱动上（12.4 跑在 12.2 的驱动上没有问题），跨大版本则不行。"},
     {"Upgrade the driver (CUDA 12 needs 525 or newer, CUDA 13 needs 580), or install the torch wheel for the driver's CUDA:\n$ pip "
      "install torch --index-url "
      "https://download.pytorch.org/whl/cu118",
      "升级驱动（CUDA 12 需要 525 及以上，CUDA 13 需要 580 及以上），或者安装与驱动匹配的 torch：\n$ pip install torch --index-url "
      "https://download.pytorch.org/whl/cu118"},
     "CUDA compatibility guide, minor version compatibility",
     check_old},
    {"GPU-UVM",
     Severity::kWarning,
     Group::kGpu,
     {"/dev/nvidia-uvm is missing", "缺少 /dev/nvidia-uvm"},
     {"Is the unified memory device there, or somebody who can make it?", "统一内存设备是否存在，或者能否被自动创建？"},
     {"CUDA opens it first. Without it: CUDA 999 \"unknown error\" or \"CUDA unknown error - this may be due to an incorrectly set up "
      "environment\", while "
      "nvidia-smi looks well.",
      "CUDA 初始化时首先打开它。缺少它会报 CUDA 999 \"unknown error\"，而 nvidia-smi 看起来一切正常。"},
     {"Load the module and make the node; for a container do so on its host and start it again:\n$ sudo modprobe nvidia_uvm && sudo "
      "nvidia-modprobe -u -c 0",
      "加载模块并创建设备节点；如果是容器，请在宿主机上执行后重启容器：\n$ sudo modprobe nvidia_uvm && sudo nvidia-modprobe -u -c 0"},
     "NCCL user guide, troubleshooting",
     check_uvm},
    {"GPU-FABRIC-MANAGER",
     Severity::kError,
     Group::kGpu,
     {"the fabric manager of the NVSwitches does not run", "NVSwitch 的 fabric manager 没有运行"},
     {"Does nv-fabricmanager run where there are NVSwitches?", "有 NVSwitch 的机器上 nv-fabricmanager 是否在运行？"},
     {"On machines with NVSwitches every CUDA call fails with 802 \"system not yet initialized\" until the fabric manager, in exactly the "
      "driver's version, has "
      "set up the switches. nvidia-smi shows the GPUs all the same.",
      "在有 NVSwitch 的机器上，fabric manager（版本必须与驱动完全一致）完成交换机配置之前，所有 CUDA 调用都会以 802 \"system not yet "
      "initialized\" 失败，而 nvidia-smi "
      "仍能正常列出 GPU。"},
     {"Install the package of the driver's version if it is missing, then start it:\n$ sudo systemctl enable --now nvidia-fabricmanager\n$ "
      "journalctl -u "
      "nvidia-fabricmanager -n 20",
      "若未安装，请安装与驱动同版本的软件包，然后启动：\n$ sudo systemctl enable --now nvidia-fabricmanager\n$ journalctl -u "
      "nvidia-fabricmanager -n 20"},
     "NVIDIA fabric manager user guide",
     check_fabric_manager},
    {"GPU-DRIVERS-DIFFER",
     Severity::kNote,
     Group::kGpu,
     {"hosts have different driver versions", "各主机的驱动版本不同"},
     {"Is one driver version on all hosts?", "所有主机的驱动版本一致吗？"},
     {"It works as long as each driver knows torch's CUDA, but what goes wrong goes wrong on some hosts only, and P2P and NVLink behaviour "
      "changes between "
      "driver lines.",
      "只要每台的驱动都支持 torch 的 CUDA 就能跑，但出问题时往往只在部分主机上出现；不同驱动分支的 P2P、NVLink 行为也有差异。"},
     {"Bring the odd hosts to the majority's version when convenient:\n$ nvidia-smi --query-gpu=driver_version --format=csv,noheader",
      "方便时把少数主机统一到多数的版本：\n$ nvidia-smi --query-gpu=driver_version --format=csv,noheader"},
     "",
     check_drivers_differ},
};

}  // namespace

std::span<const Row> gpu_driver_rows() { return kGpuDriverRows; }

}  // namespace doctor
