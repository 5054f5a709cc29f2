// GPUs that work, but slower than they could: links, limits, heat, the way between them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Gpu;
using host::GpuPair;
using host::PcieLink;

// Of a link's two ends the smaller: a card that can x16 in a slot wired x8 is as it should be.
int64_t possible_width(const Gpu& g, size_t end) {
  const PcieLink& link = g.pcie[end];
  if (end + 1 >= g.pcie.size() || g.pcie[end + 1].max_width <= 0) return link.max_width;
  return std::min(link.max_width, g.pcie[end + 1].max_width);
}

// What most cards of a model have, over all hosts. Ties go to the higher; with `majority` there must be more of it than of all else.
template <typename Value>
std::map<std::string, int64_t> usual(const Situation& s, Value value, bool majority = false) {
  std::map<std::string, std::map<int64_t, int>> votes;
  each_gpu(s, [&](size_t, const Gpu& g) {
    if (std::optional<int64_t> v = value(g); v && *v > 0) ++votes[g.name][*v];
  });
  std::map<std::string, int64_t> result;
  for (const auto& [name, counts] : votes) {
    int most = 0, all = 0;
    for (const auto& [v, times] : counts) {
      all += times;
      if (times < most) continue;
      most = times;
      result[name] = v;
    }
    if (majority && most * 2 <= all) result.erase(name);
  }
  return result;
}

// One finding a card, at the lowest narrow link: device first, then the bridges above it.
void check_width(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> peers =
      usual(s, [](const Gpu& g) { return g.pcie.empty() ? std::nullopt : std::optional(g.pcie[0].width); }, true);
  each_gpu(s, [&](size_t h, const Gpu& g) {
    for (size_t end = 0; end < g.pcie.size(); ++end) {
      const PcieLink& link = g.pcie[end];
      int64_t can = possible_width(g, end);
      bool below_peers = end == 0 && link.width > 0 && link.width < peers[g.name] && link.max_width >= peers[g.name];
      if (link.width <= 0 || link.width > 32 || (link.width >= can && !below_peers)) continue;
      int64_t wanted = std::max(can, below_peers ? peers[g.name] : 0);
      std::string place = end == 0 ? card(g) + " at " + g.pci : fmt::format("the bridge {} above {}", link.address, card(g));
      std::string place_zh = end == 0 ? card(g) + "，" + g.pci : fmt::format("{} 上游的桥 {}", card(g), link.address);
      std::string others = below_peers && link.width >= can ? "; the other cards of this model have it" : "";
      f.on(h,
           {fmt::format("{}: x{} of x{}{}", place, link.width, wanted, others),
            fmt::format("{}：实际 x{}，应为 x{}", place_zh, link.width, wanted)},
           fmt::format("sudo lspci -vv -s {} | grep -E 'LnkCap|LnkSta'", link.address));
      return;
    }
  });
}

double transfers(const std::string& speed) { return std::strtod(speed.c_str(), nullptr); }

// A card's own link slows down when idle, and with it the port just above. Links further up do not.
void check_speed(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    bool busy = g.utilization_percent.value_or(0) >= 50;
    for (size_t end = busy ? 0 : 2; end + (busy ? 0 : 1) < g.pcie.size(); ++end) {
      const PcieLink& link = g.pcie[end];
      double now = transfers(link.speed), can = transfers(link.max_speed);
      if (end + 1 < g.pcie.size() && transfers(g.pcie[end + 1].max_speed) > 0) can = std::min(can, transfers(g.pcie[end + 1].max_speed));
      if (now <= 0 || now >= can) continue;
      f.on(h,
           {fmt::format("{} above {}: {} GT/s of {}", end == 0 ? "the link" : "bridge " + link.address, card(g), now, can),
            fmt::format("{} 上游的 {}：实际 {} GT/s，可达 {}", card(g), link.address, now, can)},
           fmt::format("sudo lspci -vv -s {} | grep -E 'LnkCap|LnkSta'", link.address));
      return;
    }
  });
}

void check_replays(const Situation& s, Findings& f) {
  constexpr int64_t kMany = 1000;
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t replays = g.pcie_replays.value_or(0);
    if (replays >= kMany)
      f.on(h, {fmt::format("{}: {} PCIe replays", card(g), replays), fmt::format("{}：PCIe 重放 {} 次", card(g), replays)},
           fmt::format("nvidia-smi -q -i {} | grep -i replay", g.index));
  });
}

void check_power_limit(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> peers = usual(s, [](const Gpu& g) { return g.power_limit_mw; });
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t limit = g.power_limit_mw.value_or(0), usual_limit = peers[g.name];
    if (limit <= 0 || limit * 100 >= usual_limit * 95) return;
    f.on(h,
         {fmt::format("{}: {} W; the other cards of this model have {} W", card(g), limit / 1000, usual_limit / 1000),
          fmt::format("{}：{} W，而同型号的其他卡为 {} W", card(g), limit / 1000, usual_limit / 1000)},
         fmt::format("sudo nvidia-smi -i {} -pl {}", g.index, usual_limit / 1000));
  });
}

void check_power_low(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> peers = usual(s, [](const Gpu& g) { return g.power_limit_mw; });
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t limit = g.power_limit_mw.value_or(0), normal = g.power_limit_default_mw.value_or(0);
    if (limit <= 0 || limit * 100 >= normal * 95 || limit * 100 < peers[g.name] * 95) return;  // the odd one is PERF-POWER-LIMIT's
    f.on(h,
         {fmt::format("{}: {} W, made for {} W", card(g), limit / 1000, normal / 1000),
          fmt::format("{}：{} W，默认为 {} W", card(g), limit / 1000, normal / 1000)},
         fmt::format("sudo nvidia-smi -i {} -pl {}", g.index, normal / 1000));
  });
}

void check_clocks(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t set = g.clock_application_mhz.value_or(0), normal = g.clock_application_default_mhz.value_or(0);
    if (set <= 0 || set * 100 >= normal * 95) return;
    f.on(h,
         {fmt::format("{}: application clock {} MHz, default {} MHz", card(g), set, normal),
          fmt::format("{}：应用频率 {} MHz，默认 {} MHz", card(g), set, normal)},
         fmt::format("sudo nvidia-smi -i {} -rac", g.index));
  });
}

// nvmlClocksEventReason…: 0x8 hardware slowdown, 0x20 software thermal, 0x40 hardware thermal, 0x80 power brake.
void check_brake(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t bits = g.throttle_reasons.value_or(0);
    bool brake = bits & 0x80, plain = (bits & 0x8) && !(bits & 0x40);
    if (!brake && !plain) return;
    f.on(h,
         {fmt::format("{}: {} (0x{:x})", card(g), brake ? "power brake: the power supply asks it to slow down" : "hardware slowdown", bits),
          fmt::format("{}：{}（0x{:x}）", card(g), brake ? "power brake，电源要求其降频" : "硬件降频", bits)},
         fmt::format("nvidia-smi -q -d PERFORMANCE,POWER -i {}", g.index));
  });
}

void check_heat(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    bool throttled = (g.throttle_reasons.value_or(0) & 0x60) != 0;
    int64_t degrees = g.temperature_c.value_or(0);
    bool idle = g.processes.empty() && g.utilization_percent.value_or(100) < 5;
    if (!throttled && !(idle && degrees >= 75)) return;
    f.on(h,
         {fmt::format("{}: {} °C{}", card(g), degrees, throttled ? ", slowed down by heat" : " with nothing running"),
          fmt::format("{}：{} °C{}", card(g), degrees, throttled ? "，已因过热降频" : "，而卡上没有任务")},
         fmt::format("nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {}", g.index));
  });
}

// Pairs that talk to each other over PCIe: P2P works and there is no NVLink.
template <typename What>
void each_pcie_pair(const Situation& s, What what) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const GpuPair& p : s.hosts[h].facts.gpus.pairs)
      if (p.p2p_read == "ok" && !p.path.starts_with("NV") && !p.path.empty()) what(h, p);
}

void check_acs(const Situation& s, Findings& f) {
  std::map<size_t, std::string> bridges;
  each_pcie_pair(s, [&](size_t h, const GpuPair& p) {
    const Gpu* g = find_gpu(s.hosts[h].facts.gpus, p.a);
    if ((p.path != "PIX" && p.path != "PXB") || !g) return;  // above the switch all traffic meets the root complex anyway
    for (size_t i = 1; i < g->pcie.size(); ++i)
      if (g->pcie[i].acs_redirects) bridges.emplace(h, fmt::format("{}|{}|{}", g->pcie[i].address, p.a, p.b));
  });
  for (const auto& [h, text] : bridges) {
    std::vector<std::string_view> part = base::split(text, '|');
    f.on(h,
         {fmt::format("bridge {} sends what GPU {} writes to GPU {} up to the root complex", part[0], part[1], part[2]),
          fmt::format("桥 {} 会把 GPU {} 写给 GPU {} 的数据转发到根复合体", part[0], part[1], part[2])},
         fmt::format("sudo setpci -s {} ECAP_ACS+0x6.w=0000", part[0]));
  }
}

void check_iommu(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pcie_pair(s, [&](size_t h, const GpuPair& p) {
    if (s.hosts[h].facts.gpus.iommu_translates) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first)
    f.on(h,
         {fmt::format("the IOMMU translates what GPU {} and GPU {} write to each other ({})", p->a, p->b, p->path),
          fmt::format("GPU {} 与 GPU {} 互写的数据要经过 IOMMU 转换（{}）", p->a, p->b, p->path)},
         "cat /proc/cmdline");
}

const Row kGpuSpeedRows[] = {
    {"PERF-PCIE-WIDTH",
     Severity::kWarning,
     Group::kSpeed,
     {"a GPU's PCIe link is narrower than it could be", "GPU 的 PCIe 链路宽度不足"},
     {"Has every GPU, and every bridge above it, all the lanes both ends can do?", "每块 GPU 及其上游的桥都用满了两端支持的通道数吗？"},
     {"A badly seated card, a dirty slot or a bad riser trains to fewer lanes. Everything works, but loading and collectives through this "
      "card run at the fraction, and all ranks "
      "wait for it. NCCL reads what the link could do, not what it does, so its log shows nothing.",
      "卡没有插好、插槽有灰尘或转接线不良时，链路会协商到更少的通道。一切都能运行，但经过这块卡的加载与集合通信会按比例变慢，所有 rank "
      "都要等它。NCCL 读取的是链路的最大能力而不是当前状态，所以日志里看不出来。"},
     {"Switch off, reseat the card or exchange the riser, and look again:\n$ nvidia-smi "
      "--query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv",
      "关机后重新插卡或更换转接线，再检查一次：\n$ nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv"},
     "NCCL src/graph/topo.cc; imbue-ai/cluster-health",
     check_width},
    {"PERF-PCIE-SPEED",
     Severity::kWarning,
     Group::kSpeed,
     {"a PCIe link runs at a lower generation than it could", "PCIe 链路运行在较低的代际"},
     {"Do the links above the GPUs run at the speed both ends can do?", "GPU 上游的链路达到两端支持的速率了吗？"},
     {"A GPU's own link slows down when idle and is judged under load only; a bridge above a switch does not, so a low speed there is a "
      "fault: a bad cable or riser, or a BIOS "
      "setting. Every GPU below shares the loss.",
      "GPU 自身的链路空闲时会降速，因此只在有负载时判断；交换芯片上游的桥不会降速，那里速率低就是故障：线缆或转接线不良，或者 BIOS "
      "设置不当。下面所有 GPU 都会受影响。"},
     {"Check cable, riser and the BIOS's link speed:\n$ sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:' | grep -B1 downgraded",
      "检查线缆、转接线以及 BIOS 的链路速率设置：\n$ sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:' | grep -B1 downgraded"},
     "imbue-ai/cluster-health",
     check_speed},
    {"PERF-PCIE-REPLAYS",
     Severity::kNote,
     Group::kSpeed,
     {"a GPU's PCIe link repeats many packets", "GPU 的 PCIe 链路重传较多"},
     {"Does the replay counter of every GPU stay low?", "每块 GPU 的 PCIe 重放计数是否较低？"},
     {"Packets that arrive damaged are sent again. Many of them mean a poor contact, cable or riser; it costs speed now and may become Xid "
      "79 later. The counter starts anew when "
      "the driver is loaded.",
      "损坏的数据包会被重发。次数多说明接触、线缆或转接线不良，现在影响速度，以后可能发展为 Xid 79。计数在重新加载驱动后清零。"},
     {"See whether it grows under load, then reseat the card:\n$ nvidia-smi -q | grep -i replay",
      "观察负载下是否继续增长，然后重新插卡：\n$ nvidia-smi -q | grep -i replay"},
     "",
     check_replays},
    {"PERF-POWER-LIMIT",
     Severity::kWarning,
     Group::kSpeed,
     {"a GPU may draw less power than its peers", "某块 GPU 的功率上限低于同型号其他卡"},
     {"Is the power limit of all cards of a model the same?", "同型号显卡的功率上限一致吗？"},
     {"A limit left from a test (nvidia-smi -pl) makes one card slower, and in data parallel training all ranks run at the pace of the "
      "slowest.",
      "测试时用 nvidia-smi -pl 设置后忘了改回，会让这块卡变慢；数据并行训练中所有 rank 都以最慢的卡为准。"},
     {"Set it to what the others have:\n$ sudo nvidia-smi -i <gpu> -pl <watts>",
      "设置成与其他卡一致：\n$ sudo nvidia-smi -i <gpu> -pl <watts>"},
     "",
     check_power_limit},
    {"PERF-POWER-LOW",
     Severity::kNote,
     Group::kSpeed,
     {"GPUs are limited below their normal power", "GPU 的功率上限低于默认值"},
     {"May the GPUs draw the power they are made for?", "GPU 的功率上限是默认值吗？"},
     {"All cards of this model are limited alike, so it is probably meant so (power, heat, noise). It costs speed: the last third of the "
      "power is worth some 10 %.",
      "同型号的卡都设置成一样，多半是有意为之（供电、散热、噪声）。代价是速度：功率的最后三分之一大约对应 10 % 的性能。"},
     {"To have the full speed:\n$ sudo nvidia-smi -pl <watts>", "如需全速：\n$ sudo nvidia-smi -pl <watts>"},
     "",
     check_power_low},
    {"PERF-CLOCKS",
     Severity::kWarning,
     Group::kSpeed,
     {"a GPU's clock is set lower than its default", "GPU 频率被设得低于默认值"},
     {"Are the application clocks the default ones?", "应用频率是默认值吗？"},
     {"Somebody fixed the clocks (nvidia-smi -ac) for a measurement and left them so: this card is slower by that ratio, and the job with "
      "it.",
      "有人为了测试固定了频率（nvidia-smi -ac）而没有恢复：这块卡按比例变慢，整个任务也随之变慢。"},
     {"Reset them:\n$ sudo nvidia-smi -rac\n$ sudo nvidia-smi -rgc", "恢复默认：\n$ sudo nvidia-smi -rac\n$ sudo nvidia-smi -rgc"},
     "nvidia-smi manual",
     check_clocks},
    {"PERF-POWER-BRAKE",
     Severity::kWarning,
     Group::kSpeed,
     {"a GPU is slowed down by its hardware", "GPU 正被硬件降频"},
     {"Is any GPU slowed down by a power brake or hardware slowdown?", "是否有 GPU 因 power brake 或硬件原因降频？"},
     {"The power supply or the board tells the card to halve its clocks or worse: a failed or overloaded power supply, a loose power plug. "
      "It holds also without load, and one such "
      "card sets the pace of the whole job.",
      "电源或主板要求显卡把频率降到一半甚至更低：电源故障或过载、供电插头松动。没有负载时也会如此，一块这样的卡就决定了整个任务的速度。"},
     {"Check power supplies and plugs (also in the BMC's log):\n$ nvidia-smi -q -d PERFORMANCE,POWER\n$ sudo ipmitool sel list | tail",
      "检查电源与供电插头（也看 BMC 日志）：\n$ nvidia-smi -q -d PERFORMANCE,POWER\n$ sudo ipmitool sel list | tail"},
     "nvml.h, clocks event reasons",
     check_brake},
    {"PERF-HEAT",
     Severity::kWarning,
     Group::kSpeed,
     {"a GPU is too hot", "GPU 温度过高"},
     {"Is any GPU slowed down by heat, or hot with nothing to do?", "是否有 GPU 因过热降频，或者空闲时温度就很高？"},
     {"Under load it will slow down further, and with it every rank. Usual causes: a dead fan, dust, cards without a gap, warm air from "
      "the rack.",
      "有负载时会进一步降频，拖慢所有 rank。常见原因：风扇损坏、积灰、显卡之间没有间隙、机柜热风回流。"},
     {"Look at fans and inlet temperature:\n$ nvidia-smi --query-gpu=index,temperature.gpu,fan.speed --format=csv\n$ sudo ipmitool sdr "
      "type temperature",
      "检查风扇与进风温度：\n$ nvidia-smi --query-gpu=index,temperature.gpu,fan.speed --format=csv\n$ sudo ipmitool sdr type temperature"},
     "nvml.h, clocks event reasons",
     check_heat},
    {"PERF-ACS",
     Severity::kWarning,
     Group::kSpeed,
     {"PCIe switches send P2P traffic the long way round (ACS)", "PCIe 交换芯片因 ACS 绕远转发 P2P 流量"},
     {"May GPUs below one PCIe switch write to each other directly?", "同一 PCIe 交换芯片下的 GPU 能直接互写吗？"},
     {"With Access Control Services on, a switch sends what one GPU writes to its neighbour up to the CPU and back: less bandwidth for P2P "
      "and GPUDirect RDMA, and on some machines "
      "hangs. Virtual machines with passed-through cards need it, plain training hosts do not.",
      "启用访问控制服务（ACS）后，交换芯片会把一块 GPU 写给相邻 GPU 的数据先送到 CPU 再转回来：P2P 与 GPUDirect RDMA "
      "带宽下降，个别机器上还会卡死。显卡直通的虚拟机需要 ACS，普通训练主机不需要。"},
     {"Switch it off in the BIOS, or until the next boot on each bridge:\n$ sudo setpci -s <bus id> ECAP_ACS+0x6.w=0000",
      "在 BIOS 中关闭，或者对每个桥临时关闭（重启后失效）：\n$ sudo setpci -s <bus id> ECAP_ACS+0x6.w=0000"},
     "NCCL user guide, troubleshooting, PCI access control services",
     check_acs},
    {"PERF-IOMMU",
     Severity::kWarning,
     Group::kSpeed,
     {"the IOMMU stands between the GPUs", "GPU 之间的访问要经过 IOMMU"},
     {"Do GPUs that use P2P over PCIe pass by the IOMMU?", "使用 PCIe P2P 的 GPU 之间绕过 IOMMU 了吗？"},
     {"A translating IOMMU sends P2P through the root complex: slower, and on some boards the first collective hangs for ever at 100 % "
      "utilisation.",
      "启用地址转换的 IOMMU 会让 P2P 流量经过根复合体：速度变慢，在部分主板上第一次集合通信会以 100 % 利用率一直卡住。"},
     {"Put it into pass-through, for good on the kernel's command line, and reboot; or do without P2P:\n$ sudo sed -i "
      "'s/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub "
      "&& sudo update-grub\n$ export NCCL_P2P_DISABLE=1",
      "在内核命令行中改为直通模式后重启；或者不用 P2P：\n$ sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo "
      "update-grub\n$ export NCCL_P2P_DISABLE=1"},
     "NCCL user guide, troubleshooting",
     check_iommu},
};

}  // namespace

std::span<const Row> gpu_speed_rows() { return kGpuSpeedRows; }

}  // namespace doctor
