// Are the cards free, alike and set up for a job of several ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Gpu;
using machine::GpuFacts;
using machine::GpuPair;
using machine::GpuProcess;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kWorthTelling = 512 * kMiB;  // a monitor's context is smaller

// GPUs the ranks would see.
std::vector<const Gpu*> used(const Situation& s, size_t h) {
  std::vector<const Gpu*> gpus;
  for (int64_t index : seen(s, h).ranks.devices)
    if (const Gpu* g = find_gpu(s.hosts[h].facts.gpus, index)) gpus.push_back(g);
  return gpus;
}

bool orphan(const GpuProcess& p) {
  return p.visible && p.parent == 1 && (p.name.find("python") != std::string::npos || p.name.starts_with("pt_") || p.name == "torchrun");
}

std::string who(const GpuProcess& p) {
  return fmt::format("pid {} ({}{}{}), {}", p.pid, p.name, p.user.empty() ? "" : " of ", p.user,
                     base::format_bytes(static_cast<uint64_t>(p.used_bytes)));
}

void check_busy(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      for (const GpuProcess& p : g->processes)
        if (p.visible && !orphan(p) && p.used_bytes >= kWorthTelling)
          f.on(h, tr("{}: {}", card(*g), who(p)), fmt::format("ps -o pid,user,etime,args -p {}", p.pid));
}

void check_orphan(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      for (const GpuProcess& p : g->processes)
        if (orphan(p))
          f.on(h,
               tr("{}: {}, running for {}, its parent has exited", card(*g), who(p), base::format_duration(std::chrono::seconds(p.age_s))),
               fmt::format("kill {}", p.pid));
}

// Memory that no process in sight accounts for. A driver that has no word for "reserved" counts that as used.
void check_held(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const Gpu* g : used(s, h)) {
      int64_t named = 0;
      for (const GpuProcess& p : g->processes) named += p.visible ? p.used_bytes : 0;
      int64_t loose = g->memory_used_bytes - named, most = std::max<int64_t>(1536 * kMiB, g->memory_bytes / 20);
      if (loose < most || g->display_active == true) continue;
      auto hidden = std::find_if(g->processes.begin(), g->processes.end(), [](const GpuProcess& p) { return !p.visible; });
      std::string amount = base::format_bytes(static_cast<uint64_t>(loose));
      bool numbered = hidden != g->processes.end();
      f.on(h,
           numbered ? tr("{}: {} held by pid {} of another pid namespace", card(*g), amount, hidden->pid)
                    : tr("{}: {} in use, but no visible process uses them", card(*g), amount),
           fmt::format("sudo fuser -v /dev/nvidia{}", g->index));
    }
  }
}

void check_mode(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const Gpu* g : used(s, h)) {
      bool prohibited = g->compute_mode == "prohibited", exclusive = g->compute_mode == "exclusive_process";
      if (!prohibited && !exclusive) continue;
      Words state = prohibited             ? tr("prohibited: no program may use the GPU")
                    : g->processes.empty() ? tr("exclusive: one program at a time")
                                           : tr("exclusive, and in use");
      f.on(h, tr("{}: compute mode {}", card(*g), state), fmt::format("sudo nvidia-smi -i {} -c DEFAULT", g->index));
    }
  }
}

void check_mig(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> on;
    for (const Gpu* g : used(s, h))
      if (g->mig == true && (on.empty() || on.back() != g)) on.push_back(g);
    bool alone = s.single() && s.hosts[h].ranks <= 1 && s.variable(h, "CUDA_VISIBLE_DEVICES").value_or("").starts_with("MIG-");
    if (on.empty() || alone) continue;
    size_t parts = 0;
    for (const Gpu* g : on) parts += g->mig_devices.size();
    f.on(h, tr("{}: MIG is on, {} instances", cards(on), parts), fmt::format("sudo nvidia-smi -i {} -mig 0", on[0]->index));
  }
}

bool consumer(const Gpu& g) { return g.name.find("GeForce") != std::string::npos || g.name.find("TITAN") != std::string::npos; }
bool recent_consumer(const Gpu& g) {
  return g.name.find("GeForce RTX 40") != std::string::npos || g.name.find("GeForce RTX 50") != std::string::npos;
}

// Pairs of one architecture among the cards in use.
template <typename What>
void each_pair(const Situation& s, What what) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> gpus = used(s, h);
    auto in_use = [&](const Gpu* g) { return g && std::find(gpus.begin(), gpus.end(), g) != gpus.end(); };
    for (const GpuPair& p : s.hosts[h].facts.gpus.pairs) {
      const Gpu *a = find_gpu(s.hosts[h].facts.gpus, p.a), *b = find_gpu(s.hosts[h].facts.gpus, p.b);
      if (in_use(a) && in_use(b) && a->name == b->name) what(h, p, *a, *b);
    }
  }
}

void check_p2p_none(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu&, const Gpu&) {
    if (!p.p2p_read.empty() && p.p2p_read != "ok" && !p.path.starts_with("NV")) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first) {
    const Gpu* g = find_gpu(s.hosts[h].facts.gpus, p->a);
    f.on(h, tr("{} and GPU {}: \"{}\" ({})", card(*g), p->b, p->p2p_read, consumer(*g) ? tr("a consumer card") : tr("this machine")));
  }
}

void check_p2p_false(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu& a, const Gpu&) {
    if (recent_consumer(a) && p.p2p_read == "ok" && !p.path.starts_with("NV")) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first) {
    const GpuFacts& facts = s.hosts[h].facts.gpus;
    f.on(h, tr("{} and GPU {}: driver {} says P2P works", card(*find_gpu(facts, p->a)), p->b, facts.driver), "export NCCL_P2P_DISABLE=1");
  }
}

void check_p2p_nvlink(const Situation& s, Findings& f) {
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu& a, const Gpu& b) {
    if (!p.path.starts_with("NV") || p.p2p_read.empty() || p.p2p_read == "ok") return;
    f.on(h, tr("{} and GPU {} are joined by {}, but P2P is \"{}\"", card(a), b.index, p.path, p.p2p_read), "nvidia-smi topo -p2p r");
  });
}

// The strongest of the cards in use stands for the host.
void check_models(const Situation& s, Findings& f) {
  std::vector<Camp> all = camps(s, [&](const HostView& host) -> std::optional<std::string> {
    std::vector<const Gpu*> gpus = used(s, static_cast<size_t>(&host - s.hosts.data()));
    if (gpus.empty()) return std::nullopt;
    const Gpu* best =
        *std::max_element(gpus.begin(), gpus.end(), [](const Gpu* a, const Gpu* b) { return a->memory_bytes < b->memory_bytes; });
    if (best->name.empty() || best->memory_bytes <= 0) return std::nullopt;
    return fmt::format("{} ({} GiB)", model(best->name), (best->memory_bytes + (1 << 29)) >> 30);
  });
  bool tie = all.size() == 2 && all[0].hosts.size() == all[1].hosts.size();
  for (size_t i = 1; i < all.size(); ++i) {
    std::vector<size_t> hosts = all[i].hosts;
    if (tie) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
    const auto &usual = all[0], &other = all[1];
    f.on(hosts, tie ? tr("{} on {}, {} on {}", usual.value, s.hosts[usual.hosts[0]].name, other.value, s.hosts[other.hosts[0]].name)
                    : tr("{}; the others have {}", all[i].value, usual.value));
  }
}

void check_persistence(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> off;
    for (const Gpu* g : used(s, h))
      if (g->persistence == false && g->display_active != true) off.push_back(g);
    if (!off.empty()) f.on(h, tr("{}: persistence mode is off", cards(off)), "sudo nvidia-smi -pm 1");
  }
}

void check_ecc_differs(const Situation& s, Findings& f) {
  std::map<std::string, std::pair<int, int>> votes;  // model → on, off
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      if (g->ecc) ++(*g->ecc ? votes[g->name].first : votes[g->name].second);
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h)) {
      auto [on, off] = votes[g->name];
      if (!g->ecc || on == 0 || off == 0 || *g->ecc == (on >= off)) continue;
      f.on(h,
           tr("{}: ECC is {}; it is {} on {} cards of this model", card(*g), *g->ecc ? tr("on") : tr("off"), *g->ecc ? tr("off") : tr("on"),
              std::max(on, off)),
           fmt::format("sudo nvidia-smi -i {} -e {}", g->index, *g->ecc ? 0 : 1));
    }
}

const Row kGpuUseRows[] = {
    {"GPU-BUSY", Severity::kWarning, check_busy},
    {"GPU-ORPHAN", Severity::kWarning, check_orphan},
    {"GPU-MEMORY-HELD", Severity::kWarning, check_held},
    {"GPU-COMPUTE-MODE", Severity::kWarning, check_mode},
    {"GPU-MIG", Severity::kWarning, check_mig},
    {"GPU-P2P-NONE", Severity::kNote, check_p2p_none},
    {"GPU-P2P-FALSE", Severity::kWarning, check_p2p_false},
    {"GPU-P2P-NVLINK", Severity::kWarning, check_p2p_nvlink},
    {"GPU-MODELS-DIFFER", Severity::kWarning, check_models},
    {"GPU-PERSISTENCE", Severity::kNote, check_persistence},
    {"GPU-ECC-DIFFERS", Severity::kNote, check_ecc_differs},
};

}  // namespace

std::span<const Row> gpu_use_rows() { return kGpuUseRows; }

}  // namespace phalanx::doctor
