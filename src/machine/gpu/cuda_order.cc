#include "machine/gpu/cuda_order.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/text.h"

namespace phalanx::machine {
namespace {

using Why = Selection::Why;

int64_t throughput(const Gpu& g) {
  int64_t cores = std::max<int64_t>(1, cores_per_multiprocessor(g.cc_major, g.cc_minor));
  return g.sm_count * cores * std::max<int64_t>(1, g.clock_sm_max_mhz.value_or(1));
}
int64_t capability(const Gpu& g) { return g.cc_major * 100 + g.cc_minor; }

bool faster(const Gpu& a, const Gpu& b) {
  auto key = [](const Gpu& g) { return std::tuple(-throughput(g), -capability(g), -g.memory_bytes, g.pci, g.index); };
  return key(a) < key(b);
}

// All figures say that `a` is not slower, or the two are the same model.
bool surely_before(const Gpu& a, const Gpu& b) {
  if (a.name == b.name) return true;
  bool known = a.sm_count > 0 && b.sm_count > 0;
  return known && throughput(a) >= throughput(b) && capability(a) >= capability(b) && a.memory_bytes >= b.memory_bytes;
}

// What strtoul makes of an entry: the digits it starts with; -1 if there are none or they are negative.
int64_t leading_number(std::string_view entry) {
  if (!entry.empty() && entry[0] == '+') entry.remove_prefix(1);
  int64_t value = -1;
  for (char c : entry) {
    if (c < '0' || c > '9') break;
    value = std::max<int64_t>(value, 0) * 10 + (c - '0');
    if (value > 1'000'000) break;
  }
  return value;
}

enum class Kind { kIndex, kUuid, kMig };
Kind kind_of(std::string_view value) {
  if (value.substr(0, 4) == "GPU-") return Kind::kUuid;
  return value.substr(0, 4) == "MIG-" ? Kind::kMig : Kind::kIndex;
}

// The one device a UUID or the start of one names. "MIG-GPU-<uuid>/<instance>/<instance>" is the older form of MIG names.
Why find_uuid(const GpuFacts& facts, std::string_view entry, Kind kind, int64_t& device, std::string& name) {
  size_t found = 0;
  auto match = [&](const Gpu& g, const std::string& full) {
    if (full.compare(0, entry.size(), entry) != 0) return;
    ++found;
    device = g.index;
    name = full;
  };
  for (const Gpu& g : facts.devices) {
    if (kind == Kind::kUuid) match(g, g.uuid);
    for (const std::string& mig : g.mig_devices)
      if (kind == Kind::kMig) match(g, mig);
    if (kind != Kind::kMig || g.uuid.empty() || entry.substr(0, 4 + g.uuid.size()) != "MIG-" + g.uuid) continue;
    ++found;
    device = g.index;
    name = entry;
  }
  return found == 1 ? Why::kNone : found == 0 ? Why::kNoSuchUuid : Why::kAmbiguous;
}

Selection stopped(Selection s, std::string_view entry, Why why) {
  if (why == Why::kTwice) s.devices.clear();
  s.refused = entry;
  s.why = why;
  return s;
}

}  // namespace

int64_t cores_per_multiprocessor(int64_t major, int64_t minor) {
  switch (major) {
    case 3: return 192;
    case 5: return 128;
    case 6: return minor == 0 ? 64 : 128;
    case 7: return 64;
    case 8: return minor == 0 ? 64 : 128;
    default: return major >= 9 ? 128 : 0;
  }
}

CudaOrder cuda_order_of(const std::optional<std::string>& value) {
  return value && *value == "PCI_BUS_ID" ? CudaOrder::kPciBusId : CudaOrder::kFastestFirst;
}

CudaEnumeration enumerate_gpus(const GpuFacts& facts, CudaOrder order) {
  std::vector<const Gpu*> gpus;
  for (const Gpu& g : facts.devices)
    if (g.fault.empty()) gpus.push_back(&g);
  std::stable_sort(gpus.begin(), gpus.end(),
                   [](const Gpu* a, const Gpu* b) { return std::tie(a->pci, a->index) < std::tie(b->pci, b->index); });
  CudaEnumeration result;
  if (order == CudaOrder::kFastestFirst) {
    std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu* a, const Gpu* b) { return faster(*a, *b); });
    for (size_t i = 1; i < gpus.size(); ++i) result.certain = result.certain && surely_before(*gpus[i - 1], *gpus[i]);
  }
  for (const Gpu* g : gpus) result.devices.push_back(g->index);
  return result;
}

Selection select_gpus(const GpuFacts& facts, const std::optional<std::string>& value, CudaOrder order) {
  Selection s;
  std::vector<int64_t> all = enumerate_gpus(facts, order).devices;
  if (!value) {
    s.devices = all;
    return s;
  }
  Kind kind = kind_of(*value);
  s.by_index = kind == Kind::kIndex;
  std::set<std::string> given;
  for (std::string_view entry : base::split(*value, ',')) {
    int64_t device = -1;
    std::string name(entry);
    if (kind == Kind::kIndex) {
      entry = base::trim(entry);
      if (kind_of(entry) != kind) return stopped(std::move(s), entry, Why::kMixed);
      int64_t index = leading_number(entry);
      if (index < 0) return stopped(std::move(s), entry, Why::kNotANumber);
      name = std::to_string(index);
      if (given.contains(name)) return stopped(std::move(s), entry, Why::kTwice);
      if (index >= static_cast<int64_t>(all.size())) return stopped(std::move(s), entry, Why::kNoSuchIndex);
      device = all[static_cast<size_t>(index)];
    } else {
      if (kind_of(entry) != kind) return stopped(std::move(s), entry, Why::kMixed);
      Why why = find_uuid(facts, entry, kind, device, name);
      if (why != Why::kNone) return stopped(std::move(s), entry, why);
    }
    if (!given.insert(name).second) return stopped(std::move(s), entry, Why::kTwice);
    s.devices.push_back(device);
  }
  return s;
}

uint32_t count_selected(std::string_view value, uint32_t present) {
  Kind kind = kind_of(value);
  std::set<std::string> given;
  for (std::string_view entry : base::split(value, ',')) {
    std::string name(entry);
    if (kind == Kind::kIndex) {
      int64_t index = leading_number(base::trim(entry));
      if (index < 0) break;
      name = std::to_string(index);
      if (given.contains(name)) return 0;
      if (index >= present) break;
    } else if (kind_of(entry) != kind) {
      break;
    }
    if (!given.insert(name).second) return 0;
  }
  return std::min(static_cast<uint32_t>(given.size()), present);
}

}  // namespace phalanx::machine
