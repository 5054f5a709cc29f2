// GPUs that work, but slower than they could: links, limits, heat, the way between them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Gpu;
using machine::GpuPair;
using machine::PcieLink;

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
      Words place = end == 0 ? tr("{} at {}", card(g), g.pci) : tr("the bridge {} above {}", link.address, card(g));
      std::string others = below_peers && link.width >= can ? "; the other cards of this model have it" : "";
      f.on(h, tr("{}: x{} of x{}{}", place, link.width, wanted, others),
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
           tr("{} above {}: {} GT/s of {}", end == 0 ? "the link" : "bridge " + link.address, card(g), now, can,
              words::chinese_only(link.address)),
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
      f.on(h, tr("{}: {} PCIe replays", card(g), replays), fmt::format("nvidia-smi -q -i {} | grep -i replay", g.index));
  });
}

void check_power_limit(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> peers = usual(s, [](const Gpu& g) { return g.power_limit_mw; });
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t limit = g.power_limit_mw.value_or(0), usual_limit = peers[g.name];
    if (limit <= 0 || limit * 100 >= usual_limit * 95) return;
    f.on(h, tr("{}: {} W; the other cards of this model have {} W", card(g), limit / 1000, usual_limit / 1000),
         fmt::format("sudo nvidia-smi -i {} -pl {}", g.index, usual_limit / 1000));
  });
}

void check_power_low(const Situation& s, Findings& f) {
  std::map<std::string, int64_t> peers = usual(s, [](const Gpu& g) { return g.power_limit_mw; });
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t limit = g.power_limit_mw.value_or(0), normal = g.power_limit_default_mw.value_or(0);
    if (limit <= 0 || limit * 100 >= normal * 95 || limit * 100 < peers[g.name] * 95) return;  // the odd one is PERF-POWER-LIMIT's
    f.on(h, tr("{}: {} W, made for {} W", card(g), limit / 1000, normal / 1000),
         fmt::format("sudo nvidia-smi -i {} -pl {}", g.index, normal / 1000));
  });
}

void check_clocks(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t set = g.clock_application_mhz.value_or(0), normal = g.clock_application_default_mhz.value_or(0);
    if (set <= 0 || set * 100 >= normal * 95) return;
    f.on(h, tr("{}: application clock {} MHz, default {} MHz", card(g), set, normal), fmt::format("sudo nvidia-smi -i {} -rac", g.index));
  });
}

// nvmlClocksEventReason…: 0x8 hardware slowdown, 0x20 software thermal, 0x40 hardware thermal, 0x80 power brake.
void check_brake(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t bits = g.throttle_reasons.value_or(0);
    bool brake = bits & 0x80, plain = (bits & 0x8) && !(bits & 0x40);
    if (!brake && !plain) return;
    f.on(h, tr("{}: {} (0x{:x})", card(g), brake ? tr("power brake: the power supply requests a slowdown") : tr("hardware slowdown"), bits),
         fmt::format("nvidia-smi -q -d PERFORMANCE,POWER -i {}", g.index));
  });
}

void check_heat(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    bool throttled = (g.throttle_reasons.value_or(0) & 0x60) != 0;
    int64_t degrees = g.temperature_c.value_or(0);
    bool idle = g.processes.empty() && g.utilization_percent.value_or(100) < 5;
    if (!throttled && !(idle && degrees >= 75)) return;
    f.on(h, tr("{}: {} °C{}", card(g), degrees, throttled ? tr(", slowed down by heat") : tr(" with nothing running")),
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
    f.on(h, tr("bridge {} sends what GPU {} writes to GPU {} up to the root complex", part[0], part[1], part[2]),
         fmt::format("sudo setpci -s {} ECAP_ACS+0x6.w=0000", part[0]));
  }
}

void check_iommu(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pcie_pair(s, [&](size_t h, const GpuPair& p) {
    if (s.hosts[h].facts.gpus.iommu_translates) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first)
    f.on(h, tr("the IOMMU translates what GPU {} and GPU {} write to each other ({})", p->a, p->b, p->path), "cat /proc/cmdline");
}

const Row kGpuSpeedRows[] = {
    {"PERF-PCIE-WIDTH", Severity::kWarning, check_width},  {"PERF-PCIE-SPEED", Severity::kWarning, check_speed},
    {"PERF-PCIE-REPLAYS", Severity::kNote, check_replays}, {"PERF-POWER-LIMIT", Severity::kWarning, check_power_limit},
    {"PERF-POWER-LOW", Severity::kNote, check_power_low},  {"PERF-CLOCKS", Severity::kWarning, check_clocks},
    {"PERF-POWER-BRAKE", Severity::kWarning, check_brake}, {"PERF-HEAT", Severity::kWarning, check_heat},
    {"PERF-ACS", Severity::kWarning, check_acs},           {"PERF-IOMMU", Severity::kWarning, check_iommu},
};

}  // namespace

std::span<const Row> gpu_speed_rows() { return kGpuSpeedRows; }

}  // namespace phalanx::doctor
