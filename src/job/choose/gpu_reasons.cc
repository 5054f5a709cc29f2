#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "job/choose/gpu_pool.h"

namespace phalanx::job {

using doctor::HostView;
using doctor::Words;
using machine::Gpu;

void judge_gpus(const HostView& host, const GpuPool& pool, const std::vector<const Gpu*>& used, Choices& choices) {
  Words by = pool.word == GpuPool::Word::kList ? Words{"you", "你"} : Words{"CUDA_VISIBLE_DEVICES", " CUDA_VISIBLE_DEVICES "};
  for (const Gpu* g : used)
    for (const std::optional<Words>& harm : {unfit(*g, host.facts.software), busy(*g)})
      if (harm && pool.word != GpuPool::Word::kNone)
        choices.remarks.push_back({fmt::format("{}: chosen by {}: {}", host.name, by.english, harm->english),
                                   fmt::format("{}：由{}选定：{}", host.name, by.chinese, harm->chinese)});
      else if (harm)
        choices.remarks.push_back({fmt::format("{}: no other GPU is free: {}", host.name, harm->english),
                                   fmt::format("{}：没有其他空闲的卡：{}", host.name, harm->chinese)});
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
  if (k == 0) choice.gpus_why = {fmt::format("none of {}", n), fmt::format("{} 块均不可用", n)};
  else if (k == n) choice.gpus_why = {fmt::format("all {}: {}", n, model), fmt::format("全部 {} 块：{}", n, model)};
  else choice.gpus_why = {fmt::format("{} of {}: {}", k, n, model), fmt::format("{} 块中的 {} 块：{}", n, k, model)};
  auto add = [&](const Words& words) {
    choice.gpus_why.english += "; " + words.english;
    choice.gpus_why.chinese += "；" + words.chinese;
  };
  if (pool.word == GpuPool::Word::kList) return add({"as you chose", "按你的指定"});
  if (pool.word == GpuPool::Word::kVisible) return add({"from CUDA_VISIBLE_DEVICES", "按 CUDA_VISIBLE_DEVICES 指定"});
  for (const Words& why : pool.left_out) {
    bool is_used = std::any_of(used.begin(), used.end(), [&](const Gpu* g) { return busy(*g) && busy(*g)->english == why.english; });
    if (!is_used) add(why);
  }
  for (const Gpu* g : pool.fit)
    if (k > 0 && !models.contains(model_of(*g)))
      add({fmt::format("GPU {} is another model ({})", g->index, model_of(*g)),
           fmt::format("GPU {} 型号不同（{}）", g->index, model_of(*g))});
  size_t same =
      static_cast<size_t>(std::count_if(pool.fit.begin(), pool.fit.end(), [&](const Gpu* g) { return models.contains(model_of(*g)); }));
  if (same > used.size()) add(limit);
}

}  // namespace phalanx::job
