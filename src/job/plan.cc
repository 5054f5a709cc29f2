#include "job/plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/try.h"
#include "doctor/situation.h"
#include "machine/network/text.h"

namespace phalanx::job {

using base::ErrorKind;

int Plan::host_of(int rank) const {
  for (size_t h = hosts.size(); h-- > 0;)
    if (rank >= hosts[h].first_rank) return static_cast<int>(h);
  return 0;
}

namespace {

struct Count {
  int ranks = 0;
  std::string why;
};

base::Result<Count> count_ranks(const Job& job, const HostRequest& request, const wire::Hello& hello, const HostChoice* choice) {
  const std::string& name = request.target.name;
  int gpus = choice ? static_cast<int>(choice->gpus.size()) : static_cast<int>(hello.gpus);
  if (job.rule == RanksRule::kCount && !request.selected.empty() && job.count > static_cast<int>(request.selected.size()))
    return base::fail(ErrorKind::kUsage, base::counted("{}: --nproc-per-node asks for {} ranks, but {} slots were chosen", name, job.count,
                                                       request.selected.size()))
        .with_hint("choose more slots, or omit --nproc-per-node");
  if (job.rule == RanksRule::kCount) return Count{job.count, "--nproc-per-node"};
  if (!request.selected.empty()) return Count{static_cast<int>(request.selected.size()), "slots chosen by the host filter"};
  if (!job.rule && request.slots) return Count{*request.slots, fmt::format("slots={}", *request.slots)};
  if (job.rule == RanksRule::kCpu) return Count{static_cast<int>(hello.cpus), base::counted("{} CPUs", hello.cpus)};
  if (job.rule == RanksRule::kGpu && gpus == 0)
    return base::fail(ErrorKind::kUnfit, fmt::format("{}: no GPU to put a rank on", name))
        .because("--nproc-per-node gpu requests one rank per GPU, but the driver reports none")
        .with_hint("ssh " + (request.target.destination.empty() ? name : request.target.destination) + " nvidia-smi -L");
  if (gpus > 0 && choice && !choice->gpus_why.english.empty()) return Count{gpus, choice->gpus_why.english};
  if (gpus > 0) return Count{gpus, fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s")};
  return Count{1, "no GPU: one rank"};
}

bool has_gpu_slots(const wire::Hello& hello, const std::vector<int>& selected) {
  return std::all_of(selected.begin(), selected.end(), [&](int id) { return id < static_cast<int>(hello.gpus); });
}

void add_once(std::vector<std::string>& list, const std::string& address) {
  if (!address.empty() && std::find(list.begin(), list.end(), address) == list.end()) list.push_back(address);
}

bool is_loopback(const std::string& address) { return address.rfind("127.", 0) == 0 || address == "::1"; }

}  // namespace

int ranks_asked(const Job& job, const HostRequest& host) {
  return job.rule == RanksRule::kCount ? job.count : !job.rule ? host.slots.value_or(0) : 0;
}

bool wants_gpus(const Job& job, const doctor::Situation& situation) {
  if (job.rule == RanksRule::kGpu || job.wish.count || !job.wish.lists.empty()) return true;
  if (job.rule == RanksRule::kCpu || job.hides_gpus) return false;
  bool some = false, enough = !job.or_cpus;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    const doctor::HostView& host = situation.hosts[h];
    const auto gpus = static_cast<int>(host.facts.gpus.devices.size());
    some = some || gpus > 0;
    enough = enough || (host.probed && h < job.hosts.size() && ranks_asked(job, job.hosts[h]) <= gpus);
  }
  return some && enough;
}

base::Result<Plan> make_plan(const Job& job, const std::vector<wire::Hello>& hosts, const std::optional<Choices>& choices) {
  Plan plan;
  for (size_t h = 0; h < hosts.size(); ++h) {
    const HostRequest& request = job.hosts[h];
    const HostChoice* choice = choices && choices->hosts[h].has_gpus ? &choices->hosts[h] : nullptr;
    TRY_ASSIGN(Count count, count_ranks(job, request, hosts[h], choice));
    if (hosts[h].gpus > 0 && !has_gpu_slots(hosts[h], request.selected))
      return base::fail(ErrorKind::kUnfit,
                        base::counted("{}: slot {} was chosen, but the host has {} GPUs", request.target.name,
                                      *std::max_element(request.selected.begin(), request.selected.end()), hosts[h].gpus))
          .with_hint(fmt::format("choose slots from 0 to {}", hosts[h].gpus - 1));
    PlannedHost planned{request.target.name, plan.world, count.ranks, count.why, {}, ""};
    if (choices)
      for (const Setting& setting : choices->hosts[h].settings) planned.chosen.emplace_back(setting.name, setting.value);
    else if (!request.selected.empty()) planned.visible_devices = fmt::format("{}", fmt::join(request.selected, ","));
    plan.world += count.ranks;
    plan.hosts.push_back(std::move(planned));
  }
  return plan;
}

wire::Variables rank_variables(const Job& job, const Plan& plan, int rank, const Meeting& meeting) {
  int h = plan.host_of(rank);
  const PlannedHost& host = plan.hosts[static_cast<size_t>(h)];
  auto text = [](int n) { return std::to_string(n); };
  std::string r = text(rank), world = text(plan.world), node = text(h), nodes = text(static_cast<int>(plan.hosts.size())),
              local = text(host.ranks);
  wire::Variables v = {{"RANK", r},
                       {"LOCAL_RANK", text(plan.local_rank(rank))},
                       {"WORLD_SIZE", world},
                       {"LOCAL_WORLD_SIZE", local},
                       {"GROUP_RANK", node},
                       {"GROUP_WORLD_SIZE", nodes},
                       {"NODE_RANK", node},
                       {"ROLE_NAME", "default"},
                       {"ROLE_RANK", r},
                       {"ROLE_WORLD_SIZE", world},
                       {"CROSS_RANK", node},
                       {"CROSS_SIZE", nodes},
                       {"LOCAL_SIZE", local},
                       {"MASTER_ADDR", meeting.address},
                       {"MASTER_PORT", text(meeting.port)},
                       {"TORCHELASTIC_RUN_ID", job.run_id},
                       {"TORCHELASTIC_RESTART_COUNT", text(job.attempt)},
                       {"TORCHELASTIC_MAX_RESTARTS", text(job.max_restarts)},
                       {"PHALANX_RUN_ID", job.run_id}};
  if (meeting.served) v.emplace_back("TORCHELASTIC_USE_AGENT_STORE", "True");
  v.insert(v.end(), host.chosen.begin(), host.chosen.end());
  if (!host.visible_devices.empty()) {
    v.emplace_back("CUDA_VISIBLE_DEVICES", host.visible_devices);
    v.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  }
  return v;
}

wire::Variables host_defaults(const Plan& plan, const std::string& interface) {
  wire::Variables v;
  if (interface.empty()) return v;
  v.emplace_back("GLOO_SOCKET_IFNAME", interface);
  if (plan.hosts.size() > 1) v.emplace_back("NCCL_SOCKET_IFNAME", "=" + interface);  // '=': this name exactly (NCCL user guide)
  return v;
}

bool interface_chosen(const std::optional<Choices>& choices, size_t host) { return choices && !choices->hosts[host].address.empty(); }

std::string bound_cpus(const std::optional<Choices>& choices, size_t host, int local_rank) {
  if (!choices || static_cast<size_t>(local_rank) >= choices->hosts[host].rank_cpus.size()) return "";
  return choices->hosts[host].rank_cpus[static_cast<size_t>(local_rank)];
}

std::vector<std::string> meeting_addresses(const Job& job, const std::vector<wire::Hello>& hosts, const std::optional<Choices>& choices) {
  if (machine::is_address(job.master_address)) return {job.master_address};
  if (hosts.size() == 1) return {"127.0.0.1"};
  const wire::Hello& first = hosts[0];
  std::vector<std::string> list;
  if (choices) add_once(list, choices->hosts[0].address);
  auto own = [&](const std::string& a) {
    return std::any_of(first.addresses.begin(), first.addresses.end(), [&](const wire::Address& mine) { return mine.address == a; });
  };
  if (!is_loopback(first.ssh_server)) add_once(list, first.ssh_server);
  for (size_t h = 1; h < hosts.size(); ++h)
    if (own(hosts[h].ssh_client)) add_once(list, hosts[h].ssh_client);
  for (bool v6 : {false, true})
    for (const wire::Address& a : first.addresses)
      if ((a.address.find(':') != std::string::npos) == v6) add_once(list, a.address);
  if (list.empty()) list.push_back("127.0.0.1");
  return list;
}

}  // namespace phalanx::job
