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

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double most(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

}  // namespace

void Stragglers::take(const wire::Pulse& pulse) {
  if (pulse.window_ms == 0) return;
  double window = pulse.window_ms;
  for (const wire::RankPulse& rank : pulse.ranks) {
    Use& use = ranks_[static_cast<int>(rank.rank)];
    auto add = [](std::vector<double>& list, double value) {
      list.push_back(value);
      if (list.size() > kSlowWindows) list.erase(list.begin());
    };
    add(use.cpu, rank.cpu_ms / window);
    add(use.throttled, rank.throttled_ms / window);
    add(use.faults, rank.major_faults / (window / 1000));
  }
}

void Stragglers::tell(std::vector<Diagnosis>& out, Diagnosis verdict) {
  std::string key = verdict.code + (verdict.host ? std::to_string(*verdict.host) : "");
  if (told_.insert(std::move(key)).second) out.push_back(std::move(verdict));
}

std::vector<Diagnosis> Stragglers::look(const std::map<int, size_t>& ranks) {
  std::vector<Diagnosis> out;
  std::vector<int> busy, idle;
  for (const auto& [rank, host] : ranks) {
    auto found = ranks_.find(rank);
    if (found == ranks_.end() || found->second.cpu.size() < kSlowWindows) return out;  // not all are known yet
    const Use& use = found->second;
    if (double held = least(use.throttled); held >= kHeldBack)
      tell(out,
           {"SLOW-CPU-LIMIT", {rank}, host, tr("the CPU limit of its cgroup throttled it for at least {:.0f} % of the time", held * 100)});
    if (double faults = least(use.faults); faults >= kManyFaults)
      tell(out, {"HANG-SWAPPING", {rank}, host, tr("{:.0f} pages a second are read back from disk", faults)});
    if (least(use.cpu) >= kBusy) busy.push_back(rank);
    if (most(use.cpu) <= kIdle) idle.push_back(rank);
  }
  // The one that computes while all others wait: who waits least is who is waited for.
  if (busy.size() == 1 && idle.size() + 1 == ranks.size() && !idle.empty()) {
    const Use& use = ranks_[busy.front()];
    double others = 0;
    for (int rank : idle) others = std::max(others, most(ranks_[rank].cpu));
    tell(out, {"SLOW-RANK", busy, ranks.at(busy.front()),
               tr("it computes ({:.0f} % of a CPU) while all other ranks wait (at most {:.0f} %)", least(use.cpu) * 100, others * 100)});
  }
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
