// Which GPUs the ranks of each host get.
//
// One model everywhere: all ranks of a step wait for the slowest, and a card of another architecture may not run the program at
// all. The model is the one of which all hosts have most; the number is the same on every host, since frameworks that count hosts ×
// GPUs (DeepSpeed, Lightning, tensor parallel groups) take it for granted. Whoever wants it otherwise says so: --gpus, slots,
// CUDA_VISIBLE_DEVICES. Their word is followed to the letter, and told where it harms.
//
// A GPU in exclusive-process mode serves one rank as well as any other. One that somebody else computes on is left out while
// enough others are free; asked for, it is given, with a remark.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "job/choose/gpu_pool.h"
#include "machine/gpu/cuda_order.h"

namespace phalanx::job {
namespace {

using doctor::HostView;
using doctor::Situation;
using doctor::Words;
using machine::Gpu;
using words::tr;

constexpr int kNoLimit = 1 << 20;

// The model of which most ranks can be had on all these hosts alike; the more memory, the newer, the larger of equals. Empty: none
// is on all of them.
std::string best_model(const std::vector<const GpuPool*>& pools) {
  std::map<std::string, const Gpu*> models;
  for (const GpuPool* pool : pools)
    for (const Gpu* g : pool->from()) models.emplace(model_of(*g), g);
  auto score = [&](const std::string& model) {
    int least = kNoLimit;
    for (const GpuPool* pool : pools) {
      int count = pool->count_of(model);
      least = std::min(least, count < pool->asked ? 0 : count);
    }
    const Gpu& g = *models.at(model);
    return std::tuple(least, g.memory_bytes, g.cc_major * 100 + g.cc_minor, g.sm_count);
  };
  std::string best;
  for (const auto& [model, gpu] : models)
    if (std::get<0>(score(model)) > 0 && (best.empty() || score(model) > score(best))) best = model;
  return best;
}

struct Limit {
  int count = kNoLimit;  // for hosts of which nobody has spoken
  size_t host = 0;       // whose number it is
};

Limit least_of(const std::vector<GpuPool>& pools, const std::vector<std::string>& models) {
  Limit least;
  for (size_t h = 0; h < pools.size(); ++h) {
    const GpuPool& pool = pools[h];
    bool by_word = pool.word != GpuPool::Word::kNone;
    if (!pool.open || (pool.asked > 0 && !by_word)) continue;
    int count = by_word ? static_cast<int>(pool.given.size()) : pool.count_of(models[h]);
    if (count > 0 && count < least.count) least = {count, h};
  }
  return least;
}

// asked for more than there are of the model: others too.
std::vector<const Gpu*> take(const GpuPool& pool, const std::string& model, int limit) {
  if (pool.word != GpuPool::Word::kNone) return pool.given;
  std::vector<const Gpu*> used;
  for (bool same : {true, false}) {
    int most = pool.asked > 0 ? pool.asked : same ? limit : 0;
    for (const Gpu* g : pool.fit)
      if ((model_of(*g) == model) == same && static_cast<int>(used.size()) < most) used.push_back(g);
  }
  std::sort(used.begin(), used.end(), [](const Gpu* a, const Gpu* b) { return a->index < b->index; });
  return used;
}

// The GPUs of the ranks come first, so that rank 3 finds its own as number 3.
void set_variables(const Situation& situation, size_t h, const GpuPool& pool, HostChoice& choice) {
  const HostView& host = situation.hosts[h];
  choice.settings.push_back(
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID", tr("number GPUs as nvidia-smi does; CUDA's default order puts the fastest first")});
  std::vector<int64_t> order = machine::enumerate_gpus(host.facts.gpus, machine::CudaOrder::kPciBusId).devices;
  std::string value;
  std::vector<int64_t> seen(choice.gpus.begin(), choice.gpus.end());
  for (const Gpu* gpu : pool.seen)
    if (std::find(seen.begin(), seen.end(), gpu->index) == seen.end()) seen.push_back(gpu->index);
  bool visible = situation.variable(h, "CUDA_VISIBLE_DEVICES").has_value();
  if (seen == order && !visible) return;
  for (int64_t index : seen)  // a card that does not answer has no number in CUDA, and those behind it move up
    value += (value.empty() ? "" : ",") + std::to_string(std::find(order.begin(), order.end(), index) - order.begin());
  choice.settings.push_back({"CUDA_VISIBLE_DEVICES", value,
                             visible                            ? tr("the GPUs selected by your value, numbered in PCI order")
                             : seen.size() > choice.gpus.size() ? tr("the GPUs chosen above first; the ranks see the other free ones too")
                                                                : tr("only the GPUs chosen above")});
}

void too_few(const HostView& host, const GpuPool& pool, size_t used, Choices& choices) {
  Words words = tr("{}: {} GPU{} requested, {} available", host.name, pool.asked, pool.asked == 1 ? "" : "s", used);
  for (const Words& why : pool.left_out) words.add(tr("; "), why);
  (pool.insisted ? choices.refusals : choices.remarks).push_back(std::move(words));
}

void note_mixture(const Situation& situation, const std::vector<std::set<std::string>>& models, Choices& choices) {
  std::map<std::string, std::vector<size_t>> hosts_of;
  for (size_t h = 0; h < models.size(); ++h)
    for (const std::string& model : models[h]) hosts_of[model].push_back(h);
  if (hosts_of.size() < 2) return;
  Words list;
  for (const auto& [model, hosts] : hosts_of) list.add(tr("; "), tr("{}: {}", model, host_names(situation, hosts)));
  choices.remarks.push_back(tr("GPUs of different models in one job: every step waits for the slowest GPU ({})", list));
}

}  // namespace

void choose_gpus(const Situation& situation, const GpuRequest& wish, Choices& choices) {
  std::vector<GpuPool> pools;
  std::vector<const GpuPool*> open;
  for (size_t h = 0; h < situation.hosts.size(); ++h) pools.push_back(look_at_gpus(situation, wish, h, choices));
  for (const GpuPool& pool : pools)
    if (pool.open) open.push_back(&pool);
  std::string common = best_model(open);
  std::vector<std::string> models(pools.size());
  for (size_t h = 0; h < pools.size(); ++h)
    if (pools[h].open) models[h] = common.empty() ? best_model({&pools[h]}) : common;

  Limit least = least_of(pools, models);
  std::vector<std::set<std::string>> used_models(pools.size());
  for (size_t h = 0; h < pools.size(); ++h) {
    const GpuPool& pool = pools[h];
    HostChoice& choice = choices.hosts[h];
    if (!pool.open) continue;
    std::vector<const Gpu*> used = take(pool, models[h], least.count);
    for (const Gpu* g : used) {
      choice.gpus.push_back(static_cast<int>(g->index));
      used_models[h].insert(model_of(*g));
    }
    const std::string& other = situation.hosts[least.host].name;
    explain_gpus(situation.hosts[h].facts.gpus, pool, used,
                 pool.asked > 0 ? tr("the requested number") : tr("the same number as {} (to use more: --gpus HOST:LIST)", other), choice);
    judge_gpus(situation.hosts[h], pool, used, choices);
    if (static_cast<int>(used.size()) < pool.asked) {
      too_few(situation.hosts[h], pool, used.size(), choices);
      if (!pool.insisted) {  // slots are not only for GPUs: the ranks start, and what they find is theirs
        choice.gpus.clear();
        choice.gpus_why = tr("{} ranks on {} usable GPUs: none is assigned, each rank chooses for itself", pool.asked, used.size());
      }
    }
    choice.has_gpus = !choice.gpus.empty();
    if (choice.has_gpus) set_variables(situation, h, pool, choice);
  }
  note_mixture(situation, used_models, choices);
}

}  // namespace phalanx::job
