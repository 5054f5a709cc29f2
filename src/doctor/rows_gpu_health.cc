// Is each card whole: on the bus, its memory, its NVLinks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Gpu;
using host::GpuFacts;

std::string at(const Gpu& g) { return g.pci.empty() ? card(g) : card(g) + " at " + g.pci; }
std::string at_zh(const Gpu& g) { return g.pci.empty() ? card(g) : card(g) + "，" + g.pci; }
std::string reset(const Gpu& g) { return fmt::format("sudo nvidia-smi --gpu-reset -i {}", g.index); }

void check_lost(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& facts = s.hosts[h].facts.gpus;
    for (const Gpu& g : facts.devices)
      if (!g.fault.empty())
        f.on(h, {fmt::format("{}: \"{}\"", at(g), g.fault), fmt::format("{}：\"{}\"", at_zh(g), g.fault)}, "sudo reboot");
    for (const std::string& pci : facts.lost) {
      bool named = std::any_of(facts.devices.begin(), facts.devices.end(), [&](const Gpu& g) { return g.pci == pci && !g.fault.empty(); });
      if (!named)
        f.on(h, {fmt::format("the GPU at {} answers no more on the PCI bus", pci), fmt::format("{} 处的 GPU 在 PCI 总线上已无应答", pci)},
             "sudo reboot");
    }
  }
}

void check_count(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    int64_t known = static_cast<int64_t>(g.devices.size());
    if (g.source != "nvml" || !g.nvml_error.empty() || !s.hosts[h].facts.machine.container.empty()) continue;
    if (g.pci_devices <= known || !g.lost.empty()) continue;
    f.on(h,
         {fmt::format("{} NVIDIA GPUs on the PCI bus, {} known to the driver", g.pci_devices, known),
          fmt::format("PCI 总线上有 {} 块 NVIDIA GPU，驱动只识别到 {} 块", g.pci_devices, known)},
         "sudo dmesg | grep -i NVRM | tail -20");
  }
}

void check_ecc(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t errors = g.ecc_volatile_uncorrected.value_or(0);
    if (errors > 0)
      f.on(h,
           {fmt::format("{}: {} uncorrectable error{} since the driver was loaded", at(g), errors, errors == 1 ? "" : "s"),
            fmt::format("{}：驱动加载以来有 {} 次不可纠正错误", at_zh(g), errors)},
           reset(g));
  });
}

void check_remap_pending(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    if (g.remap_pending)
      f.on(h, {fmt::format("{}: a row waits to be remapped", at(g)), fmt::format("{}：有内存行等待重映射", at_zh(g))}, reset(g));
  });
}

void check_remap_failed(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t rows = g.remapped_uncorrectable.value_or(0);
    if (!g.remap_failed && rows <= 512) return;
    f.on(h,
         {g.remap_failed ? fmt::format("{}: a remapping has failed", at(g))
                         : fmt::format("{}: {} rows remapped for uncorrectable errors", at(g), rows),
          g.remap_failed ? fmt::format("{}：曾有重映射失败", at_zh(g)) : fmt::format("{}：因不可纠正错误已重映射 {} 行", at_zh(g), rows)},
         fmt::format("nvidia-smi -q -d ROW_REMAPPER -i {}", g.index));
  });
}

int64_t active_links(const Gpu& g) {
  return std::count_if(g.nvlinks.begin(), g.nvlinks.end(), [](const host::NvLink& l) { return l.active; });
}

// How many links the cards of a model mostly have up, over all hosts: a bridge not fitted anywhere is no fault.
std::map<std::string, int64_t> usual_links(const Situation& s) {
  std::map<std::string, std::map<int64_t, int>> votes;
  each_gpu(s, [&](size_t, const Gpu& g) {
    if (!g.nvlinks.empty()) ++votes[g.name][active_links(g)];
  });
  std::map<std::string, int64_t> usual;
  for (const auto& [name, counts] : votes) {
    int most = 0;
    for (const auto& [links, times] : counts)
      if (times >= most) {  // of equally common answers the higher
        most = times;
        usual[name] = links;
      }
  }
  return usual;
}

void check_nvlink(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> usual = usual_links(s);
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t up = active_links(g), wanted = g.nvlinks.empty() ? 0 : usual[g.name];
    if (up >= wanted || (up == 0 && !s.hosts[h].facts.gpus.nvswitch)) return;  // none at all without switches: no bridge on this pair
    std::vector<int> down;
    for (const host::NvLink& l : g.nvlinks)
      if (!l.active) down.push_back(static_cast<int>(l.link));
    f.on(h,
         {fmt::format("{}: {} of {} NVLinks up; link {} down", at(g), up, wanted, base::format_ranges(down)),
          fmt::format("{}：{} 条 NVLink 中只有 {} 条正常，链路 {} 断开", at_zh(g), wanted, up, base::format_ranges(down))},
         fmt::format("nvidia-smi nvlink --status -i {}", g.index));
  });
}

void check_nvlink_errors(const Situation& s, Findings& f) {
  constexpr int64_t kMany = 1000;
  each_gpu(s, [&](size_t h, const Gpu& g) {
    for (const host::NvLink& l : g.nvlinks)
      if (l.active && l.errors >= kMany)
        f.on(h,
             {fmt::format("{}: link {} counts {} replays, recoveries and CRC errors", at(g), l.link, l.errors),
              fmt::format("{}：链路 {} 累计 {} 次重放、恢复与 CRC 错误", at_zh(g), l.link, l.errors)},
             fmt::format("nvidia-smi nvlink --errorcounters -i {}", g.index));
  });
}

const Row kGpuHealthRows[] = {
    {"GPU-LOST",
     Severity::kError,
     Group::kGpu,
     {"a GPU does not answer any more", "有 GPU 已无应答（掉卡）"},
     {"Can every GPU that the machine has be asked?", "机器上的每块 GPU 都能访问吗？"},
     {"The card has fallen off the bus or its driver state is broken: \"Unable to determine the device handle for GPU … Unknown Error\", "
      "Xid 79 \"GPU has fallen "
      "off the bus\" in the kernel log. NCCL asks every card of the machine, also those that CUDA_VISIBLE_DEVICES leaves out, so a job on "
      "the other cards "
      "fails or hangs too, and the numbers of the cards behind it move by one.",
      "这块卡已从总线上掉线，或驱动状态损坏：\"Unable to determine the device handle for GPU … Unknown Error\"，内核日志中有 Xid 79 \"GPU "
      "has fallen off the bus\"。NCCL "
      "会访问机器上的每一块卡，包括 CUDA_VISIBLE_DEVICES 没有选中的卡，所以只用其他卡的任务同样会失败或卡住，而且后面几块卡的编号会前移。"},
     {"Reboot; if it comes back lost, switch the machine fully off and on, reseat card, riser and power cables:\n$ sudo dmesg | grep -iE "
      "'xid|fallen'\n$ sudo reboot",
      "重启；若仍掉卡，请彻底断电再上电，并检查显卡、转接线与供电插头：\n$ sudo dmesg | grep -iE 'xid|fallen'\n$ sudo reboot"},
     "NVIDIA Xid catalogue; NCCL src/misc/nvmlwrap.cc",
     check_lost},
    {"GPU-COUNT",
     Severity::kWarning,
     Group::kGpu,
     {"the driver knows fewer GPUs than there are", "驱动识别到的 GPU 比实际少"},
     {"Does the driver know every NVIDIA GPU on the PCI bus?", "驱动是否识别了 PCI 总线上所有的 NVIDIA GPU？"},
     {"A card that the driver could not start (power cable, BAR space, broken card, an old card that this driver line has dropped) is "
      "missing from nvidia-smi, and "
      "the job would run with fewer ranks than you think.",
      "有卡未能被驱动初始化（供电线没插好、BAR 地址空间不足、卡损坏，或者卡太旧已不被该驱动支持），nvidia-smi 里看不到它，任务实际的 rank "
      "数会比预期少。"},
     {"Read what the driver said at boot:\n$ sudo dmesg | grep -i NVRM | tail -20\n$ lspci -d 10de: -nnk",
      "查看驱动启动时的日志：\n$ sudo dmesg | grep -i NVRM | tail -20\n$ lspci -d 10de: -nnk"},
     "",
     check_count},
    {"GPU-ECC",
     Severity::kWarning,
     Group::kGpu,
     {"uncorrectable memory errors on a GPU", "GPU 显存出现不可纠正的 ECC 错误"},
     {"Has a GPU had uncorrectable memory errors since its driver was loaded?", "驱动加载以来，GPU 显存是否出现过不可纠正错误？"},
     {"The next rank that touches the bad memory dies with \"uncorrectable ECC error encountered\" (CUDA 214), mostly hours into the run; "
      "Xid 48, 94 or 95 stands in the "
      "kernel log.",
      "下一个访问到坏区的 rank 会以 \"uncorrectable ECC error encountered\"（CUDA 214）退出，往往发生在训练数小时之后；内核日志里会有 Xid "
      "48、94 或 95。"},
     {"Reset the card when nothing uses it, so that the row is remapped; if errors come back, take it out of service:\n$ sudo nvidia-smi "
      "--gpu-reset -i <gpu>",
      "在没有任务占用时重置该卡，使坏行得到重映射；若错误再次出现，请停用该卡：\n$ sudo nvidia-smi --gpu-reset -i <gpu>"},
     "NVIDIA GPU memory error management",
     check_ecc},
    {"GPU-REMAP-PENDING",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU must be reset to repair its memory", "GPU 需要重置才能修复显存"},
     {"Does a row remapping wait for a reset?", "是否有行重映射在等待重置？"},
     {"The card has found a bad memory row and keeps a spare ready, but uses it only after a reset (Xid 63 \"New row marked for remapping, "
      "reset gpu to activate\"). Until "
      "then the same errors return.",
      "显卡发现了坏行并准备好了备用行，但重置之后才会启用（Xid 63 \"New row marked for remapping, reset gpu to "
      "activate\"）。在此之前同样的错误会反复出现。"},
     {"With nothing running on the card:\n$ sudo nvidia-smi --gpu-reset -i <gpu>\nWith NVSwitches all cards are reset together: leave out "
      "-i.",
      "确认卡上没有任务后执行：\n$ sudo nvidia-smi --gpu-reset -i <gpu>\n有 NVSwitch 的机器需要所有卡一起重置：不加 -i。"},
     "NVIDIA GPU memory error management",
     check_remap_pending},
    {"GPU-REMAP-FAILED",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU's memory cannot be repaired any more", "GPU 显存已无法再修复"},
     {"Has a row remapping failed, or are nearly all spare rows used?", "是否有重映射失败，或者备用行几乎用尽？"},
     {"There is no spare row left where one was needed (Xid 64). NVIDIA takes this as a reason to exchange the card.",
      "需要重映射的区域已经没有备用行（Xid 64）。按 NVIDIA 的标准，这块卡符合更换（RMA）条件。"},
     {"Leave the card out and have it exchanged:\n$ nvidia-smi -q -d ROW_REMAPPER",
      "停用该卡并申请更换：\n$ nvidia-smi -q -d ROW_REMAPPER"},
     "NVIDIA GPU memory error management, RMA policy thresholds",
     check_remap_failed},
    {"GPU-NVLINK-DOWN",
     Severity::kWarning,
     Group::kGpu,
     {"NVLinks of a GPU are down", "GPU 有 NVLink 断开"},
     {"Has every GPU as many NVLinks up as the others of its model?", "每块 GPU 正常的 NVLink 数量与同型号其他卡一致吗？"},
     {"NCCL builds its rings on what is left: the whole job slows to the one card, or falls back to PCIe, or NCCL stops with \"P2P is "
      "disabled between NVLINK connected "
      "GPUs\". Xid 74 in the kernel log tells when the link went.",
      "NCCL 只能用剩下的链路组环：整个任务被这一块卡拖慢，或者退回 PCIe，或者 NCCL 报 \"P2P is disabled between NVLINK connected "
      "GPUs\"。内核日志中的 Xid 74 记录了断开的时间。"},
     {"Look at the links; a reset often brings them back, else reseat the bridge or drain the host:\n$ nvidia-smi nvlink --status\n$ sudo "
      "nvidia-smi --gpu-reset",
      "查看链路；重置往往可以恢复，否则重插桥接器或停用该主机：\n$ nvidia-smi nvlink --status\n$ sudo nvidia-smi --gpu-reset"},
     "NCCL src/graph/paths.cc",
     check_nvlink},
    {"GPU-NVLINK-ERRORS",
     Severity::kNote,
     Group::kGpu,
     {"an NVLink counts many errors", "NVLink 错误计数偏高"},
     {"Do the error counters of the NVLinks stay low?", "NVLink 的错误计数是否较低？"},
     {"Replays are repaired in hardware and cost a little speed; a link whose count grows during a run is about to go down. Counters start "
      "anew when the driver is loaded.",
      "重放由硬件自动修复，只损失少许速度；如果计数在训练中持续增长，这条链路很可能即将断开。计数在重新加载驱动后清零。"},
     {"Compare twice, some minutes apart under load:\n$ nvidia-smi nvlink --errorcounters",
      "在有负载时隔几分钟对比两次：\n$ nvidia-smi nvlink --errorcounters"},
     "",
     check_nvlink_errors},
};

}  // namespace

std::span<const Row> gpu_health_rows() { return kGpuHealthRows; }

}  // namespace doctor
