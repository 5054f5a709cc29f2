// CPUs of the ranks: how many threads each may start, and on which NUMA node it runs.
//
// A rank is bound to CPUs near its GPU only where the machine has several NUMA nodes and its GPUs hang off known ones: memory that
// the loader fills and the GPU reads then lies on the right side. Ranks of one node share its CPUs evenly. NCCL finds the network card
// nearest to a GPU by itself, and its threads follow the rank's CPUs: nothing to set for the network.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "job/choose/cpu_list.h"
#include "job/choose/parts.h"
#include "machine/ranks/threads.h"

namespace phalanx::job {
namespace {

using doctor::HostView;
using doctor::Situation;
using doctor::Words;
using words::tr;

const machine::Gpu* find(const HostView& host, int index) {
  for (const machine::Gpu& g : host.facts.gpus.devices)
    if (g.index == index) return &g;
  return nullptr;
}

CpuList near(const HostView& host, const machine::Gpu& gpu) {
  CpuList local = parse_cpu_list(gpu.local_cpus);
  const std::vector<std::string>& nodes = host.facts.machine.numa_cpus;
  if (local.empty() && gpu.numa_node >= 0 && gpu.numa_node < static_cast<int64_t>(nodes.size()))
    local = parse_cpu_list(nodes[static_cast<size_t>(gpu.numa_node)]);
  return local;
}

// The user, or who started us, has already said where the threads run.
std::string bound_by(const Situation& situation, size_t h) {
  for (const char* name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND"})
    if (situation.variable(h, name)) return name;
  for (const std::string& word : situation.job.argv)
    for (const char* program : {"numactl", "taskset"})
      if (word == program || word.ends_with(std::string("/") + program)) return program;
  return "";
}

void bind(const Situation& situation, size_t h, HostChoice& choice) {
  const HostView& host = situation.hosts[h];
  const std::vector<std::string>& nodes = host.facts.machine.numa_cpus;
  size_t with_cpus = static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [](const std::string& n) { return !n.empty(); }));
  if (!choice.has_gpus || with_cpus < 2) return;
  if (std::string by = bound_by(situation, h); !by.empty()) {
    choice.cpus_why = tr("not bound: {} decides", by);
    return;
  }
  CpuList online;
  for (const std::string& node : nodes) online = join(online, parse_cpu_list(node));
  CpuList allowed = host.facts.limits.cpuset.empty() ? online : intersect(online, parse_cpu_list(host.facts.limits.cpuset));
  if (count(allowed) != host.facts.machine.cpus_usable) return;  // bound already, and to what is not known
  std::map<CpuList, std::vector<size_t>> ranks_of;
  for (size_t r = 0; r < choice.gpus.size(); ++r) {
    const machine::Gpu* gpu = find(host, choice.gpus[r]);
    CpuList cpus = gpu ? intersect(near(host, *gpu), allowed) : CpuList{};
    if (cpus.empty()) {
      if (gpu && !near(host, *gpu).empty())
        choice.cpus_why = tr("not bound: no CPU near GPU {} may be used (cpuset {})", gpu->index, host.facts.limits.cpuset);
      return;
    }
    if (cpus == allowed) return;  // near all of them: nothing to gain
    ranks_of[cpus].push_back(r);
  }
  std::vector<std::string> lists(choice.gpus.size());
  for (const auto& [cpus, ranks] : ranks_of) {
    if (count(cpus) < static_cast<int64_t>(ranks.size())) return;
    std::vector<CpuList> shares = split(cpus, ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) lists[ranks[i]] = text_of(shares[i]);
  }
  choice.rank_cpus = std::move(lists);
  choice.cpus_why = tr("CPUs of the NUMA node of the rank's GPU, shared evenly by its ranks");
}

}  // namespace

void choose_threads(const Situation& situation, const GpuRequest& wish, Choices& choices) {
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    const machine::Facts& facts = situation.hosts[h].facts;
    int64_t cpus = facts.machine.cpus_usable, ranks = ranks_on(situation, wish, choices, h);
    if (cpus <= 0 || ranks <= 0) continue;
    int64_t each = machine::threads_per_rank(cpus, facts.limits.cpu_quota, ranks);
    if (std::optional<std::string> set = situation.variable(h, "OMP_NUM_THREADS")) {
      base::Result<int64_t> threads = base::parse_int(base::split(*set, ',')[0], 1, 1 << 20);
      if (threads.ok() && *threads * ranks > cpus && *threads > 1)
        choices.remarks.push_back(tr("{}: your OMP_NUM_THREADS={} starts {} threads for {} ranks on {} CPUs", situation.hosts[h].name,
                                     *threads, *threads * ranks, ranks, cpus));
      continue;
    }
    bool quota = facts.limits.cpu_quota > 0 && facts.limits.cpu_quota < static_cast<double>(cpus);
    if (ranks == 1 && !quota) continue;  // a thread per CPU is what OpenMP starts by itself
    Words of = quota ? tr("{:g} CPUs (the cgroup's quota)", facts.limits.cpu_quota) : tr("{} CPUs", cpus);
    choices.hosts[h].settings.push_back(
        {"OMP_NUM_THREADS", std::to_string(each),
         tr("{} / {} rank{}; if unset, every rank starts one thread per CPU", of, ranks, ranks == 1 ? "" : "s")});
  }
}

void choose_cpus(const Situation& situation, const GpuRequest&, Choices& choices) {
  for (size_t h = 0; h < situation.hosts.size(); ++h) bind(situation, h, choices.hosts[h]);
}

}  // namespace phalanx::job
