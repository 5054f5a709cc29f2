#include "diagnosis/hang/straggler.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

constexpr double kHeldBack = 0.2;    // of the time, by the CPU limit
constexpr double kManyFaults = 100;  // a second
constexpr double kBusy = 0.85;       // of one CPU
constexpr double kIdle = 0.35;
constexpr int64_t kFullUse = 95;   // percent
constexpr double kLowPower = 0.4;  // of the limit: kernels that wait for the network draw about a third
constexpr double kMuchMore = 2.0;  // times the median of the others
constexpr int64_t kMuchBytes = 4LL << 30;

constexpr size_t kRecent = 3;                            // windows
constexpr double kSomeHeldBack = 0.1, kSomeDelay = 0.2;  // of the time, where the others are known to wait
constexpr double kStolen = 0.1;                          // of the CPUs' time
constexpr double kDelayed = 0.3;                         // of the time
constexpr double kLittleDelay = 0.1;                     // on another host: what happens everywhere is not one host's
constexpr double kMostShare = 0.95;

std::string slowed_clock(const machine::Gpu& g) {
  if (!g.clock_sm_mhz || !g.clock_sm_max_mhz) return "";
  return fmt::format(" ({} of {} MHz)", *g.clock_sm_mhz, *g.clock_sm_max_mhz);
}
double gain(double share) { return 1 / (1 - std::min(share, kMostShare)); }
// 0 of nothing: a host whose first pulse has not come.
double least(const std::vector<double>& values) { return values.empty() ? 0 : *std::min_element(values.begin(), values.end()); }
double most(const std::vector<double>& values) { return values.empty() ? 0 : *std::max_element(values.begin(), values.end()); }

}  // namespace

void Stragglers::take(size_t host, const wire::Pulse& pulse) {
  if (pulse.window_ms == 0) return;
  double window = pulse.window_ms;
  auto add = [](std::vector<double>& list, double value) {
    list.push_back(value);
    if (list.size() > kSlowWindows) list.erase(list.begin());
  };
  add(stolen_[host], pulse.stolen_permille / 1000.0);
  for (const wire::RankPulse& rank : pulse.ranks) {
    Use& use = ranks_[static_cast<int>(rank.rank)];
    add(use.cpu, rank.cpu_ms / window);
    add(use.throttled, rank.throttled_ms / window);
    add(use.faults, rank.major_faults / (window / 1000));
    add(use.delayed, rank.delayed_ms / window);
  }
}

void Stragglers::tell(std::vector<Diagnosis>& out, Diagnosis verdict) {
  std::string key = verdict.code + (verdict.host ? std::to_string(*verdict.host) : "");
  if (!told_.insert(std::move(key)).second) return;
  if (verdict.host) explained_.insert(*verdict.host);
  out.push_back(std::move(verdict));
}

std::vector<Diagnosis> Stragglers::look(const std::map<int, size_t>& ranks, bool steps) {
  std::vector<Diagnosis> out;
  std::vector<int> busy, idle;
  for (const auto& [rank, host] : ranks) {
    auto found = ranks_.find(rank);
    if (found == ranks_.end() || found->second.cpu.size() < kSlowWindows) return out;  // not all are known yet
    const Use& use = found->second;
    if (double held = least(use.throttled); held >= kHeldBack)
      tell(out,
           {"SLOW-CPU-LIMIT",
            {rank},
            host,
            tr("the CPU limit of its cgroup throttled it for at least {:.0f} % of the time: without the limit, steps could be up to {:.1f} "
               "times as fast",
               held * 100, gain(held))});
    if (double faults = least(use.faults); faults >= kManyFaults)
      tell(out, {"HANG-SWAPPING", {rank}, host, tr("{:.0f} pages a second are read back from disk", faults)});
    if (least(use.cpu) >= kBusy) busy.push_back(rank);
    if (most(use.cpu) <= kIdle) idle.push_back(rank);
  }
  look_at_hosts(out, ranks);
  // The one that computes while all others wait: who waits least is who is waited for.
  if (steps && busy.size() == 1 && idle.size() + 1 == ranks.size() && !idle.empty() && !explained_.count(ranks.at(busy.front()))) {
    const Use& use = ranks_[busy.front()];
    double others = 0;
    for (int rank : idle) others = std::max(others, most(ranks_[rank].cpu));
    tell(out, {"SLOW-RANK", busy, ranks.at(busy.front()),
               tr("it computes ({:.0f} % of a CPU) while all other ranks wait (at most {:.0f} %)", least(use.cpu) * 100, others * 100)});
  }
  return out;
}

// What one host suffers from, and another does not: its hypervisor, and other programs on its CPUs.
void Stragglers::look_at_hosts(std::vector<Diagnosis>& out, const std::map<int, size_t>& ranks) {
  std::map<size_t, std::pair<double, double>> delay;  // by host: the least of any rank's best window, the most of any rank's
  std::map<size_t, int> delayed_rank;
  for (const auto& [rank, host] : ranks) {
    const Use& use = ranks_[rank];
    auto at = delay.try_emplace(host, 0.0, 0.0).first;
    const double low = least(use.throttled) > 0 ? 0 : least(use.delayed);
    if (low > at->second.first) delayed_rank[host] = rank;
    at->second.first = std::max(at->second.first, low);
    at->second.second = std::max(at->second.second, most(use.delayed));
  }
  for (const auto& [host, _] : delay) {
    const double stolen = stolen_[host].size() < kSlowWindows ? 0 : least(stolen_[host]);
    bool elsewhere_less = false, elsewhere_free = false;
    for (const auto& [other, delays] : delay) {
      if (other == host) continue;
      elsewhere_less = elsewhere_less || (!stolen_[other].empty() && most(stolen_[other]) <= stolen - kStolen);
      elsewhere_free = elsewhere_free || delays.second <= kLittleDelay;
    }
    if (stolen >= kStolen && elsewhere_less)
      tell(out, {"SLOW-STEAL",
                 {},
                 host,
                 tr("its hypervisor takes at least {:.0f} % of the CPU time: without that, steps could be up to {:.1f} times as fast",
                    stolen * 100, gain(stolen))});
    else if (delay[host].first >= kDelayed && elsewhere_free)
      tell(out,
           {"LIM-BUSY",
            {delayed_rank[host]},
            host,
            tr("for at least {:.0f} % of the time it could have run, but other threads had the CPUs; on another host that does not happen. "
               "With free CPUs, steps could be up to {:.1f} times as fast",
               delay[host].first * 100, gain(delay[host].first))});
  }
}

// Of the last windows: who is named by what the others wait for needs no long proof of the cause.
std::optional<Diagnosis> Stragglers::cause_of(const Straggler& straggler) const {
  const size_t host = straggler.ranks.front().host;
  auto recent = [](const std::vector<double>& list) {
    if (list.size() < kRecent) return 0.0;
    return *std::min_element(list.end() - static_cast<ptrdiff_t>(kRecent), list.end());
  };
  for (const RankShares& r : straggler.ranks) {
    auto found = ranks_.find(r.rank);
    if (found == ranks_.end()) continue;
    const Use& use = found->second;
    if (double held = recent(use.throttled); held >= kSomeHeldBack)
      return Diagnosis{
          "SLOW-CPU-LIMIT", {r.rank}, host, tr("the CPU limit of its cgroup throttles it for {:.0f} % of the time", held * 100)};
    if (double faults = recent(use.faults); faults >= kManyFaults)
      return Diagnosis{"HANG-SWAPPING", {r.rank}, host, tr("{:.0f} pages a second are read back from disk", faults)};
    if (double delayed = recent(use.delayed); delayed >= kSomeDelay)
      return Diagnosis{
          "LIM-BUSY", {r.rank}, host, tr("for {:.0f} % of the time it could run, but other threads have the CPUs", delayed * 100)};
  }
  auto stolen = stolen_.find(host);
  if (double taken = stolen == stolen_.end() ? 0 : recent(stolen->second); taken >= kStolen)
    return Diagnosis{"SLOW-STEAL", {}, host, tr("its hypervisor takes {:.0f} % of the CPU time", taken * 100)};
  return std::nullopt;
}

std::vector<Diagnosis> Stragglers::name(const Straggler& straggler) {
  std::vector<Diagnosis> out;
  Diagnosis verdict = straggler_verdict(straggler);
  if (explained_.count(*verdict.host)) return out;
  if (std::optional<Diagnosis> cause = cause_of(straggler); cause && verdict.code != "SLOW-LOADER") {
    cause->details.push_back(std::move(verdict.evidence));
    for (doctor::Words& line : verdict.details) cause->details.push_back(std::move(line));
    verdict = std::move(*cause);
  }
  tell(out, std::move(verdict));
  return out;
}

std::vector<Diagnosis> Stragglers::look_at_gpus(size_t host, const std::vector<machine::Gpu>& gpus, const std::set<int64_t>& pids) {
  std::vector<Diagnosis> out;
  std::vector<const machine::Gpu*> ours;
  for (const machine::Gpu& gpu : gpus)
    if (std::any_of(gpu.processes.begin(), gpu.processes.end(), [&](const machine::GpuProcess& p) { return pids.count(p.pid) > 0; }))
      ours.push_back(&gpu);
  if (ours.empty()) return out;
  auto spins = [](const machine::Gpu* g) {
    return g->utilization_percent && g->power_mw && g->power_limit_mw && *g->utilization_percent >= kFullUse &&
           static_cast<double>(*g->power_mw) < kLowPower * static_cast<double>(*g->power_limit_mw);
  };
  if (std::all_of(ours.begin(), ours.end(), spins)) {
    int64_t watts = *ours.front()->power_mw / 1000, limit = *ours.front()->power_limit_mw / 1000;
    tell(out, {"SLOW-GPU-WAITS",
               {},
               host,
               tr("all its GPUs show {} % utilisation at only {} W of {} W: their kernels wait for data from other ranks",
                  *ours.front()->utilization_percent, watts, limit)});
  }
  for (const machine::Gpu* g : ours)
    if (!g->pcie.empty() && g->pcie[0].width > 0 && g->pcie[0].width < g->pcie[0].max_width)
      tell(out, {"PERF-PCIE-WIDTH",
                 {},
                 host,
                 tr("GPU {} runs with {} of {} PCIe lanes under load", g->index, g->pcie[0].width, g->pcie[0].max_width)});
  // nvmlClocksEventReason…: 0x4 software power cap, 0x8 hardware slowdown, 0x20 and 0x40 thermal, 0x80 power brake.
  for (const machine::Gpu* g : ours) {
    const int64_t why = g->throttle_reasons.value_or(0);
    const std::string clock = slowed_clock(*g);
    if ((why & 0x60) != 0)
      tell(out, {"PERF-HEAT", {}, host, tr("GPU {} is slowed down by heat: {} °C{}", g->index, g->temperature_c.value_or(0), clock)});
    else if ((why & 0x88) != 0)
      tell(out, {"PERF-POWER-BRAKE", {}, host, tr("GPU {} is slowed down by its power supply{}", g->index, clock)});
    else if ((why & 0x4) != 0 && g->power_limit_mw && g->power_limit_default_mw && *g->power_limit_mw < *g->power_limit_default_mw)
      tell(out, {"PERF-POWER-LIMIT",
                 {},
                 host,
                 tr("GPU {} is slowed down by its power limit of {} W; its default is {} W{}", g->index, *g->power_limit_mw / 1000,
                    *g->power_limit_default_mw / 1000, clock)});
  }
  if (ours.size() < 2) return out;
  std::vector<int64_t> others;
  for (size_t i = 1; i < ours.size(); ++i) others.push_back(ours[i]->memory_used_bytes);
  std::nth_element(others.begin(), others.begin() + static_cast<ptrdiff_t>(others.size() / 2), others.end());
  int64_t median = others[others.size() / 2], first = ours[0]->memory_used_bytes;
  if (static_cast<double>(first) >= kMuchMore * static_cast<double>(median) && first - median >= kMuchBytes)
    tell(out, {"SLOW-GPU0-MEMORY",
               {},
               host,
               tr("GPU {} uses {} of memory, the others {}", ours[0]->index, base::format_bytes(static_cast<uint64_t>(first)),
                  base::format_bytes(static_cast<uint64_t>(median)))});
  return out;
}

}  // namespace phalanx::diagnosis
