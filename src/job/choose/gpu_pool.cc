#include "job/choose/gpu_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine/gpu/cuda_order.h"

namespace phalanx::job {
namespace {

using doctor::HostView;
using doctor::Situation;
using doctor::Words;
using machine::Gpu;
using words::tr;

const Gpu* find(const HostView& host, int64_t index) {
  for (const Gpu& g : host.facts.gpus.devices)
    if (g.index == index) return &g;
  return nullptr;
}

const std::vector<int>* list_for(const GpuRequest& wish, const HostView& host) {
  for (const auto& [name, list] : wish.lists)
    if (name == host.name) return &list;
  return nullptr;
}

void read_list(const HostView& host, const std::vector<int>& list, GpuPool& pool, Choices& choices) {
  pool.word = GpuPool::Word::kList;
  for (int index : list) {
    const Gpu* gpu = find(host, index);
    bool twice = gpu && std::find(pool.given.begin(), pool.given.end(), gpu) != pool.given.end();
    if (gpu && !twice) pool.given.push_back(gpu);
    size_t n = host.facts.gpus.devices.size();
    if (!gpu) choices.refusals.push_back(tr("{}: GPU {} was requested, but the host has {}", host.name, index, n));
    if (twice) choices.refusals.push_back(tr("{}: GPU {} was requested twice", host.name, index));
  }
}

void sort_out(const HostView& host, GpuPool& pool) {
  std::vector<const Gpu*> taken;
  for (const Gpu& gpu : host.facts.gpus.devices) {
    std::optional<Words> why = unfit(gpu, host.facts.software);
    std::optional<Words> who = why ? std::nullopt : busy(gpu);
    if (!why && !who) pool.fit.push_back(&gpu);
    if (who) taken.push_back(&gpu);
    if (why || who) pool.left_out.push_back(why ? *why : *who);
  }
  if (pool.asked > 0 && !pool.insisted) pool.seen = pool.fit;
  if (pool.fit.size() >= static_cast<size_t>(std::max(1, pool.asked))) return;
  pool.fit.insert(pool.fit.end(), taken.begin(), taken.end());  // better shared than nothing
  std::sort(pool.fit.begin(), pool.fit.end(), [](const Gpu* a, const Gpu* b) { return a->index < b->index; });
}

// "1,2" may mean other cards to CUDA than to whoever typed it with nvidia-smi before his eyes.
void compare_orders(const HostView& host, const std::string& value, const std::vector<int64_t>& selected, Choices& choices) {
  std::vector<int64_t> by_bus = machine::select_gpus(host.facts.gpus, value, machine::CudaOrder::kPciBusId).devices;
  if (by_bus == selected) return;
  std::string list;
  for (int64_t index : selected) {
    const Gpu* gpu = find(host, index);
    list += fmt::format("{}GPU {} ({})", list.empty() ? "" : ", ", index, gpu ? gpu->name : "");
  }
  choices.remarks.push_back(
      tr("{}: CUDA_VISIBLE_DEVICES={} without CUDA_DEVICE_ORDER=PCI_BUS_ID numbers the fastest GPU first, and selects {} in nvidia-smi's "
         "numbering",
         host.name, value, list));
}

void read_visible(const Situation& situation, size_t h, const std::string& value, GpuPool& pool, Choices& choices) {
  pool.word = GpuPool::Word::kVisible;
  const HostView& host = situation.hosts[h];
  machine::CudaOrder order = machine::cuda_order_of(situation.variable(h, "CUDA_DEVICE_ORDER"));
  std::vector<int64_t> selected = machine::select_gpus(host.facts.gpus, value, order).devices;
  for (int64_t index : selected)
    if (const Gpu* gpu = find(host, index)) pool.given.push_back(gpu);
  compare_orders(host, value, selected, choices);
  if (pool.asked > 0 && !pool.insisted) pool.seen = pool.given;
  if (pool.asked > 0 && static_cast<size_t>(pool.asked) < pool.given.size()) pool.given.resize(static_cast<size_t>(pool.asked));
}

}  // namespace

int GpuPool::count_of(const std::string& model) const {
  return static_cast<int>(std::count_if(from().begin(), from().end(), [&](const Gpu* g) { return model_of(*g) == model; }));
}

GpuPool look_at_gpus(const Situation& situation, const GpuRequest& wish, size_t h, Choices& choices) {
  const HostView& host = situation.hosts[h];
  const std::vector<int>* list = list_for(wish, host);
  std::optional<std::string> visible = situation.variable(h, "CUDA_VISIBLE_DEVICES");
  int devices = static_cast<int>(host.facts.gpus.devices.size());
  GpuPool pool;
  pool.insisted = list || wish.count;
  pool.asked = wish.count ? *wish.count : h < wish.ranks.size() ? wish.ranks[h] : 0;
  if (devices == 0) {
    if (host.probed && pool.insisted) choices.refusals.push_back(tr("{}: GPUs were requested, but none was found", host.name));
    return pool;
  }
  Words& why = choices.hosts[h].gpus_why;
  if (!list && visible && visible->rfind("MIG-", 0) == 0) {
    why = tr("CUDA_VISIBLE_DEVICES names MIG devices: left as it is");
    return pool;
  }
  if (!pool.insisted && pool.asked > devices) {
    why = tr("{} ranks on {} GPUs: none is assigned, each rank chooses for itself", pool.asked, devices);
    return pool;
  }
  pool.open = true;
  if (list) {
    read_list(host, *list, pool, choices);
    pool.asked = 0;
  } else if (visible) {
    read_visible(situation, h, *visible, pool, choices);
  } else {
    sort_out(host, pool);
  }
  return pool;
}

}  // namespace phalanx::job
