// Which cards a rank really gets: CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, architectures.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Gpu;
using machine::GpuFacts;

// "RTX 3090 (8.6), GT 1030 (6.1)": in CUDA's order.
std::string in_order(const std::vector<const Gpu*>& gpus) {
  std::vector<std::string> names;
  for (const Gpu* g : gpus) names.push_back(fmt::format("{} ({})", model(g->name), capability(*g)));
  return base::join(names, ", ");
}

// UUIDs of the cards of the most common architecture among all.
std::string uuids_of_strongest(const GpuFacts& facts) {
  std::vector<const Gpu*> all = gpus_of(facts, machine::enumerate_gpus(facts, machine::CudaOrder::kFastestFirst).devices);
  std::vector<std::string> ids;
  for (const Gpu* g : all)
    if (g->cc_major == all[0]->cc_major && g->cc_minor == all[0]->cc_minor && !g->uuid.empty()) ids.push_back(g->uuid);
  return base::join(ids, ",");
}

void check_mixed(const Situation& s, size_t h, const HostView& host, Findings& f) {
  if (!has_devices(s, h)) return;
  Seen v = seen(s, h);
  std::vector<const Gpu*> gpus = gpus_of(host.facts.gpus, v.ranks.devices);
  std::set<std::string> kinds;
  for (const Gpu* g : gpus)
    if (std::string c = capability(*g); !c.empty()) kinds.insert(c);
  if (kinds.size() < 2) return;
  f.on(h, tr("{}: ranks see {}", set_to(v), in_order(gpus)), "export CUDA_VISIBLE_DEVICES=" + uuids_of_strongest(host.facts.gpus));
}

void check_order(const Situation& s, size_t h, const HostView& host, Findings& f) {
  if (!has_devices(s, h)) return;
  Seen v = seen(s, h);
  if (v.order_set || !v.value || !v.by_pci.by_index) return;
  const GpuFacts& facts = host.facts.gpus;
  std::vector<const Gpu*> pci = gpus_of(facts, v.by_pci.devices), fast = gpus_of(facts, v.by_speed.devices);
  std::vector<std::string> a, b;
  for (const Gpu* g : pci) a.push_back(g->name);
  for (const Gpu* g : fast) b.push_back(g->name);
  if (a == b) return;
  bool certain = machine::enumerate_gpus(facts, machine::CudaOrder::kFastestFirst).certain;
  Words guess = certain ? Words{} : tr(" (by our estimate of their speed)");
  f.on(h,
       tr("CUDA_VISIBLE_DEVICES={} selects {} in the order of nvidia-smi, but {} in the order of CUDA without CUDA_DEVICE_ORDER{}",
          *v.value, in_order(pci), in_order(fast), guess),
       "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

void check_order_value(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::optional<std::string> value = s.variable(h, "CUDA_DEVICE_ORDER");
    if (!value || value->empty() || *value == "PCI_BUS_ID" || *value == "FASTEST_FIRST") continue;
    f.on(h, tr("CUDA_DEVICE_ORDER={} is unknown to CUDA, so FASTEST_FIRST applies", *value), "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
}

// Binary code for sm_XY runs on X.Z with Z >= Y; PTX for compute_XY is compiled for anything from X.Y on; "sm_90a" is for 9.0 alone.
// (CUDA programming guide, binary and PTX compatibility.)
bool wheel_has(const std::vector<std::string>& archs, const Gpu& g) {
  for (const std::string& arch : archs) {
    bool ptx = arch.starts_with("compute_"), exact = !arch.empty() && arch.back() == 'a';
    std::string digits = arch.substr(arch.find('_') + 1);
    if (exact) digits.pop_back();
    base::Result<int64_t> number = base::parse_int(digits, 10, 9999);
    if (!number.ok()) continue;
    int64_t major = *number / 10, minor = *number % 10;
    if (exact ? major == g.cc_major && minor == g.cc_minor
        : ptx ? major < g.cc_major || (major == g.cc_major && minor <= g.cc_minor)
              : major == g.cc_major && minor <= g.cc_minor)
      return true;
  }
  return false;
}

// Certain only if no card in sight is known to the wheel, or the user chose the card by name: else the choice leaves it out.
void check_wheel(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const std::vector<std::string>& archs = s.hosts[h].facts.software.torch_archs;
    if (!has_devices(s, h) || archs.empty()) continue;
    Seen v = seen(s, h);
    std::vector<const Gpu*> all = gpus_of(s.hosts[h].facts.gpus, v.ranks.devices), lacking;
    for (const Gpu* g : all)
      if (g->cc_major > 0 && !wheel_has(archs, *g)) lacking.push_back(g);
    if (lacking.empty() || (!v.value && lacking.size() < all.size())) continue;
    f.on(h,
         tr("{} is sm_{}{}; torch is compiled for {}", cards(lacking), lacking[0]->cc_major, lacking[0]->cc_minor, base::join(archs, " ")));
  }
}

const Row kVisibilityRows[] = {
    {"VIS-MIXED-ARCH", Severity::kWarning, check_mixed},
    {"VIS-ORDER", Severity::kWarning, check_order},
    {"VIS-ORDER-VALUE", Severity::kWarning, check_order_value},
    {"VIS-WHEEL-ARCH", Severity::kError, check_wheel},
};

}  // namespace

std::span<const Row> visibility_rows() { return kVisibilityRows; }

}  // namespace phalanx::doctor
