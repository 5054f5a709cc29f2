#include "doctor/views/gpu_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace phalanx::doctor {

std::string model(const std::string& name) {
  std::string_view text = name;
  for (std::string_view word : {"NVIDIA ", "GeForce ", "Tesla "})
    if (text.starts_with(word)) text.remove_prefix(word.size());
  return std::string(text);
}

std::string card(const machine::Gpu& gpu) {
  return gpu.name.empty() ? fmt::format("GPU {}", gpu.index) : fmt::format("GPU {} ({})", gpu.index, model(gpu.name));
}

std::string capability(const machine::Gpu& gpu) { return gpu.cc_major > 0 ? fmt::format("{}.{}", gpu.cc_major, gpu.cc_minor) : ""; }

const machine::Gpu* find_gpu(const machine::GpuFacts& facts, int64_t index) {
  auto found = std::find_if(facts.devices.begin(), facts.devices.end(), [&](const machine::Gpu& g) { return g.index == index; });
  return found == facts.devices.end() ? nullptr : &*found;
}

std::string cards(const std::vector<const machine::Gpu*>& gpus) {
  std::vector<std::string> names;
  std::vector<std::vector<int>> numbers;
  for (const machine::Gpu* g : gpus) {
    size_t at = static_cast<size_t>(std::find(names.begin(), names.end(), g->name) - names.begin());
    if (at == names.size()) {
      names.push_back(g->name);
      numbers.emplace_back();
    }
    numbers[at].push_back(static_cast<int>(g->index));
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string text = "GPU " + base::format_ranges(numbers[i]);
    parts.push_back(names[i].empty() ? text : text + " (" + model(names[i]) + ")");
  }
  return base::join(parts, ", ");
}

Seen seen(const Situation& situation, size_t host) {
  const machine::GpuFacts& facts = situation.hosts[host].facts.gpus;
  Seen s;
  s.value = situation.variable(host, "CUDA_VISIBLE_DEVICES");
  std::optional<std::string> order = situation.variable(host, "CUDA_DEVICE_ORDER");
  s.order_set = order && (*order == "PCI_BUS_ID" || *order == "FASTEST_FIRST");
  s.by_pci = machine::select_gpus(facts, s.value, machine::CudaOrder::kPciBusId);
  s.by_speed = machine::select_gpus(facts, s.value, machine::CudaOrder::kFastestFirst);
  s.ranks = order && machine::cuda_order_of(order) == machine::CudaOrder::kFastestFirst ? s.by_speed : s.by_pci;
  return s;
}

std::vector<const machine::Gpu*> gpus_of(const machine::GpuFacts& facts, const std::vector<int64_t>& indices) {
  std::vector<const machine::Gpu*> gpus;
  for (int64_t index : indices)
    if (const machine::Gpu* g = find_gpu(facts, index)) gpus.push_back(g);
  return gpus;
}

Words set_to(const Seen& s) { return s.value ? tr("CUDA_VISIBLE_DEVICES={}", *s.value) : tr("CUDA_VISIBLE_DEVICES is not set"); }

bool has_devices(const Situation& s, size_t h) { return s.hosts[h].probed && !s.hosts[h].facts.gpus.devices.empty(); }

}  // namespace phalanx::doctor
