#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "job/choose/gpu_pool.h"

namespace phalanx::job {

using doctor::HostView;
using doctor::Words;
using machine::Gpu;
using words::tr;

void judge_gpus(const HostView& host, const GpuPool& pool, const std::vector<const Gpu*>& used, Choices& choices) {
  Words by = pool.word == GpuPool::Word::kList ? tr("you") : tr("CUDA_VISIBLE_DEVICES");
  for (const Gpu* g : used)
    for (const std::optional<Words>& harm : {unfit(*g, host.facts.software), busy(*g)})
      if (harm && pool.word != GpuPool::Word::kNone) choices.remarks.push_back(tr("{}: chosen by {}: {}", host.name, by, *harm));
      else if (harm) choices.remarks.push_back(tr("{}: no other GPU is free: {}", host.name, *harm));
}

void explain_gpus(const machine::GpuFacts& facts, const GpuPool& pool, const std::vector<const Gpu*>& used, const Words& limit,
                  HostChoice& choice) {
  const std::vector<Gpu>& devices = facts.devices;
  std::set<std::string> models;
  std::vector<std::string> names;
  for (const Gpu* g : used)
    if (models.insert(model_of(*g)).second) names.push_back(g->name);
  std::string model = fmt::format("{}", fmt::join(names, " + "));
  size_t n = devices.size(), k = used.size();
  if (k == 0) choice.gpus_why = tr("none of {}", n);
  else if (k == n) choice.gpus_why = tr("all {}: {}", n, model);
  else choice.gpus_why = tr("{} of {}: {}", k, n, model);
  auto add = [&](const Words& more) { choice.gpus_why.add(tr("; "), more); };
  if (pool.word == GpuPool::Word::kList) return add(tr("as you chose"));
  if (pool.word == GpuPool::Word::kVisible) return add(tr("from CUDA_VISIBLE_DEVICES"));
  for (const Words& why : pool.left_out) {
    bool is_used = std::any_of(used.begin(), used.end(), [&](const Gpu* g) { return busy(*g) && busy(*g)->english == why.english; });
    if (!is_used) add(why);
  }
  for (const Gpu* g : pool.fit)
    if (k > 0 && !models.contains(model_of(*g))) add(tr("GPU {} is another model ({})", g->index, model_of(*g)));
  size_t same =
      static_cast<size_t>(std::count_if(pool.fit.begin(), pool.fit.end(), [&](const Gpu* g) { return models.contains(model_of(*g)); }));
  if (same > used.size()) add(limit);
}

}  // namespace phalanx::job
