// Xids by what they mean. Numbers: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors). They tell of the past: the card may have
// been reset since, so none of these is an error by itself; GPU-LOST, GPU-ECC and their like look at the present.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Xid;
using Numbers = std::initializer_list<int64_t>;

constexpr Numbers kBus = {79, 154};
constexpr Numbers kMemory = {48, 63, 64, 92, 94, 95, 140, 160, 171, 172};
constexpr Numbers kNvlink = {74, 137, 144, 145, 146, 147, 148, 149, 150};
constexpr Numbers kFirmware = {62, 109, 110, 119, 120, 143};
constexpr Numbers kProgram = {13, 31, 32, 43, 45, 68, 69};

std::string ago(int64_t age_s) { return age_s < 0 ? "at an unknown time" : base::format_duration(std::chrono::seconds(age_s)) + " ago"; }
std::string ago_zh(int64_t age_s) { return age_s < 0 ? "时间未知" : base::format_duration(std::chrono::seconds(age_s)) + "前"; }

// Per host and card the newest line of a class, with how often.
template <typename Belongs>
void tell(const Situation& s, Findings& f, Belongs belongs) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::map<std::string, std::pair<const Xid*, int>> by_card;
    for (const Xid& x : s.hosts[h].facts.gpus.xids) {
      if (!belongs(x)) continue;
      auto& entry = by_card[x.pci];
      entry.first = &x;
      ++entry.second;
    }
    for (const auto& [pci, entry] : by_card) {
      std::string times =
          entry.second > 1 ? fmt::format(", {} times, last {}", entry.second, ago(entry.first->age_s)) : ", " + ago(entry.first->age_s);
      std::string zh = entry.second > 1 ? fmt::format("，共 {} 次，最近一次 {}", entry.second, ago_zh(entry.first->age_s))
                                        : "，" + ago_zh(entry.first->age_s);
      f.on(h, {entry.first->line + times, entry.first->line + zh}, "sudo dmesg -T | grep -i xid");
    }
  }
}

bool among(const Xid& x, Numbers numbers) { return !x.nvswitch && std::find(numbers.begin(), numbers.end(), x.xid) != numbers.end(); }

void check_bus(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, kBus) && x.line.find("(None)") == std::string::npos; });
}
void check_memory(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, kMemory); });
}
void check_nvlink(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, kNvlink) || (x.nvswitch && x.line.find("Non-fatal") == std::string::npos); });
}
void check_firmware(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, kFirmware); });
}
void check_program(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, kProgram); });
}

const Row kGpuLogRows[] = {
    {"GPU-XID-BUS",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU fell off the bus since boot", "开机以来有 GPU 掉卡"},
     {"Does the kernel log tell of a GPU lost since boot (Xid 79, 154)?", "内核日志中是否有掉卡记录（Xid 79、154）？"},
     {"Hardware, power or riser: once a card has fallen off the bus it tends to do so again under load, and every rank of the job dies or "
      "hangs with it. Xid 154 says what "
      "the driver wants done (\"GPU Reset Required\", \"Node Reboot Required\").",
      "原因多在硬件、供电或转接线：掉过一次的卡在高负载下往往还会再掉，届时所有 rank 都会一起失败或卡住。Xid 154 "
      "会说明驱动要求的处理方式（\"GPU Reset Required\"、\"Node Reboot "
      "Required\"）。"},
     {"Do what Xid 154 says, else reboot; if it repeats, drain the host and check seat, riser, power:\n$ sudo dmesg -T | grep -iE "
      "'xid|fallen'",
      "按 Xid 154 的要求处理，否则重启；若反复出现，停用该主机并检查插槽、转接线与供电：\n$ sudo dmesg -T | grep -iE 'xid|fallen'"},
     "NVIDIA Xid catalogue",
     check_bus},
    {"GPU-XID-MEMORY",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU reported memory errors since boot", "开机以来 GPU 报告过显存错误"},
     {"Does the kernel log tell of GPU memory errors (Xid 48, 63, 64, 94, 95 …)?",
      "内核日志中是否有显存错误（Xid 48、63、64、94、95 等）？"},
     {"48 and 95 killed whatever ran on the card; 94 killed one program; 63 wants a reset, 64 an exchange of the card. The next job meets "
      "the same memory.",
      "48 和 95 会杀死卡上的所有程序，94 只影响一个程序；63 需要重置，64 需要换卡。下一个任务还会碰到同一块显存。"},
     {"Reset the card, and drain the host if it repeats:\n$ nvidia-smi -q -d ECC,ROW_REMAPPER\n$ sudo nvidia-smi --gpu-reset -i <gpu>",
      "重置该卡；若反复出现，停用该主机：\n$ nvidia-smi -q -d ECC,ROW_REMAPPER\n$ sudo nvidia-smi --gpu-reset -i <gpu>"},
     "NVIDIA Xid catalogue",
     check_memory},
    {"GPU-XID-NVLINK",
     Severity::kWarning,
     Group::kGpu,
     {"NVLink or NVSwitch errors since boot", "开机以来出现过 NVLink 或 NVSwitch 错误"},
     {"Does the kernel log tell of NVLink errors (Xid 74, fatal SXid)?", "内核日志中是否有 NVLink 错误（Xid 74、致命 SXid）？"},
     {"A link or a switch port failed. The collective that used it hangs until NCCL's timeout and then names every rank but the guilty "
      "one.",
      "某条链路或交换机端口发生故障。正在使用它的集合通信会一直卡到 NCCL 超时，而超时日志里点名的往往不是真正出错的 rank。"},
     {"Look whether the links are up again, else reset all cards together or reboot:\n$ nvidia-smi nvlink --status\n$ sudo nvidia-smi "
      "--gpu-reset",
      "检查链路是否恢复，否则一起重置所有卡或重启：\n$ nvidia-smi nvlink --status\n$ sudo nvidia-smi --gpu-reset"},
     "NVIDIA Xid catalogue; fabric manager user guide",
     check_nvlink},
    {"GPU-XID-FIRMWARE",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU's firmware stopped answering since boot", "开机以来 GPU 固件曾停止响应"},
     {"Does the kernel log tell of GSP or firmware failures (Xid 119, 120, 62 …)?",
      "内核日志中是否有 GSP 或固件故障（Xid 119、120、62 等）？"},
     {"\"Timeout waiting for RPC from GSP\": calls into the driver hang, processes stay in state D and cannot be killed. The card needs a "
      "reset, the driver often an upgrade.",
      "\"Timeout waiting for RPC from GSP\"：驱动调用会卡住，进程停在 D 状态且无法杀死。需要重置该卡，通常还要升级驱动。"},
     {"Reset or reboot; if it repeats, upgrade the driver or switch the GSP firmware off:\n$ sudo nvidia-smi --gpu-reset -i <gpu>\n$ echo "
      "'options nvidia NVreg_EnableGpuFirmware=0' | sudo tee /etc/modprobe.d/nvidia-gsp.conf",
      "重置或重启；若反复出现，升级驱动或关闭 GSP 固件：\n$ sudo nvidia-smi --gpu-reset -i <gpu>\n$ echo 'options nvidia "
      "NVreg_EnableGpuFirmware=0' | sudo tee /etc/modprobe.d/nvidia-gsp.conf"},
     "NVIDIA Xid catalogue",
     check_firmware},
    {"GPU-XID-PROGRAM",
     Severity::kNote,
     Group::kGpu,
     {"programs have faulted on a GPU since boot", "开机以来有程序在 GPU 上出错"},
     {"Does the kernel log tell of program faults (Xid 13, 31, 43, 45)?", "内核日志中是否有程序引起的错误（Xid 13、31、43、45）？"},
     {"Mostly a bug in a program: an index out of range, \"an illegal memory access was encountered\" (700). 45 is what killing a job "
      "leaves. If different programs fault "
      "on one and the same card, suspect the card.",
      "多数是程序的问题：索引越界、\"an illegal memory access was encountered\"（700）等；45 "
      "是任务被杀后留下的记录。如果不同的程序总在同一块卡上出错，就要怀疑这块卡了。"},
     {"For a program of yours:\n$ CUDA_LAUNCH_BLOCKING=1 python <script>", "如果是自己的程序：\n$ CUDA_LAUNCH_BLOCKING=1 python <script>"},
     "NVIDIA Xid catalogue",
     check_program},
};

}  // namespace

std::span<const Row> gpu_log_rows() { return kGpuLogRows; }

}  // namespace doctor
