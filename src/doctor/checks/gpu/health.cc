// Is each card whole: on the bus, its memory, its NVLinks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Gpu;
using machine::GpuFacts;

Words at(const Gpu& g) { return g.pci.empty() ? tr("{}", card(g)) : tr("{} at {}", card(g), g.pci); }
std::string reset(const Gpu& g) { return fmt::format("sudo nvidia-smi --gpu-reset -i {}", g.index); }

void check_lost(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& facts = s.hosts[h].facts.gpus;
    for (const Gpu& g : facts.devices)
      if (!g.fault.empty()) f.on(h, tr("{}: \"{}\"", at(g), g.fault), "sudo reboot");
    for (const std::string& pci : facts.lost) {
      bool named = std::any_of(facts.devices.begin(), facts.devices.end(), [&](const Gpu& g) { return g.pci == pci && !g.fault.empty(); });
      if (!named) f.on(h, tr("the GPU at {} no longer answers on the PCI bus", pci), "sudo reboot");
    }
  }
}

void check_count(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const GpuFacts& g = s.hosts[h].facts.gpus;
    int64_t known = static_cast<int64_t>(g.devices.size());
    if (g.source != "nvml" || !g.nvml_error.empty() || !s.hosts[h].facts.machine.container.empty()) continue;
    if (g.pci_devices <= known || !g.lost.empty()) continue;
    f.on(h, tr("{} NVIDIA GPUs on the PCI bus, {} known to the driver", g.pci_devices, known), "sudo dmesg | grep -i NVRM | tail -20");
  }
}

void check_ecc(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t errors = g.ecc_volatile_uncorrected.value_or(0);
    if (errors > 0)
      f.on(h, tr("{}: {} uncorrectable error{} since the driver was loaded", at(g), errors, errors == 1 ? "" : "s"), reset(g));
  });
}

void check_remap_pending(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    if (g.remap_pending) f.on(h, tr("{}: a row remapping is pending", at(g)), reset(g));
  });
}

void check_remap_failed(const Situation& s, Findings& f) {
  each_gpu(s, [&](size_t h, const Gpu& g) {
    int64_t rows = g.remapped_uncorrectable.value_or(0);
    if (!g.remap_failed && rows <= 512) return;
    f.on(h, g.remap_failed ? tr("{}: a row remapping has failed", at(g)) : tr("{}: {} rows remapped for uncorrectable errors", at(g), rows),
         fmt::format("nvidia-smi -q -d ROW_REMAPPER -i {}", g.index));
  });
}

int64_t active_links(const Gpu& g) {
  return std::count_if(g.nvlinks.begin(), g.nvlinks.end(), [](const machine::NvLink& l) { return l.active; });
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
    for (const machine::NvLink& l : g.nvlinks)
      if (!l.active) down.push_back(static_cast<int>(l.link));
    f.on(h, tr("{}: {} of {} NVLinks up; link {} down", at(g), up, wanted, base::format_ranges(down)),
         fmt::format("nvidia-smi nvlink --status -i {}", g.index));
  });
}

void check_nvlink_errors(const Situation& s, Findings& f) {
  constexpr int64_t kMany = 1000;
  each_gpu(s, [&](size_t h, const Gpu& g) {
    for (const machine::NvLink& l : g.nvlinks)
      if (l.active && l.errors >= kMany)
        f.on(h, tr("{}: link {} counts {} replays, recoveries and CRC errors", at(g), l.link, l.errors),
             fmt::format("nvidia-smi nvlink --errorcounters -i {}", g.index));
  });
}

const Row kGpuHealthRows[] = {
    {"GPU-LOST", Severity::kError, check_lost},
    {"GPU-COUNT", Severity::kWarning, check_count},
    {"GPU-ECC", Severity::kWarning, check_ecc},
    {"GPU-REMAP-PENDING", Severity::kWarning, check_remap_pending},
    {"GPU-REMAP-FAILED", Severity::kWarning, check_remap_failed},
    {"GPU-NVLINK-DOWN", Severity::kWarning, check_nvlink},
    {"GPU-NVLINK-ERRORS", Severity::kNote, check_nvlink_errors},
};

}  // namespace

std::span<const Row> gpu_health_rows() { return kGpuHealthRows; }

}  // namespace phalanx::doctor
