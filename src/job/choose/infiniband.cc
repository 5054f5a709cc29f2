// InfiniBand and RoCE: NCCL takes what works, host by host, without asking the others. Only where the hosts would then
// disagree is something set.
//
// - A host whose ports are not ACTIVE falls back to sockets silently while the others offer verbs: they never connect. So
//   NCCL_IB_DISABLE=1 on all, and said loudly: everything is then many times slower than it could be. Where no host has verbs,
//   NCCL finds that out by itself.
// - InfiniBand and RoCE ports in one job: NCCL pairs them up by their place in its list and ends with "Attempted to connect incompatible
//   devices" (NCCL, src/transport/net_ib). The layer all hosts have, and with the higher rate, stays; the rest is excluded by name.
// - A port that is down is skipped by NCCL itself, a GPU finds its nearest card by itself: nothing to set.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/verbs.h"
#include "job/choose/parts.h"

namespace phalanx::job {
namespace {

using doctor::Situation;
using doctor::Words;
using words::tr;

void sockets_for_all(const Situation& situation, const std::vector<size_t>& with, const std::vector<size_t>& without, Choices& choices) {
  const machine::InfinibandFacts& best = situation.hosts[with[0]].facts.infiniband;
  double rate = std::max(doctor::live_rate(best, false), doctor::live_rate(best, true));
  Words names = host_names(situation, without);
  Words why = doctor::why_no_verbs(situation.hosts[without[0]].facts.infiniband);
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (!users_word(situation, h, "NCCL_IB_DISABLE"))
      choices.hosts[h].settings.push_back(
          {"NCCL_IB_DISABLE", "1", tr("{} cannot use InfiniBand ({}): all hosts use sockets, otherwise the job would hang", names, why)});
  choices.remarks.push_back(
      tr("InfiniBand is unused: {:.0f} Gbit/s per host on {}, none on {} ({}). The job runs over sockets, many times slower; repair {} "
         "before a long run",
         rate, host_names(situation, with), names, why, without.size() == 1 ? "it" : "them"));
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (std::optional<std::string> set = users_word(situation, h, "NCCL_IB_DISABLE"); set && *set == "0")
      choices.remarks.push_back(
          tr("{}: with your NCCL_IB_DISABLE=0 this host waits for InfiniBand peers, but the other hosts do not use InfiniBand",
             situation.hosts[h].name));
}

void one_link_layer(const Situation& situation, Choices& choices) {
  bool on_all[2] = {true, true}, on_any[2] = {false, false};
  double least[2] = {1e9, 1e9};
  for (const doctor::HostView& host : situation.hosts)
    for (bool roce : {false, true}) {
      std::vector<doctor::LivePort> live = doctor::live_ports(host.facts.infiniband);
      bool has = std::any_of(live.begin(), live.end(), [&](const doctor::LivePort& l) { return l.roce() == roce; });
      double rate = doctor::live_rate(host.facts.infiniband, roce);
      on_all[roce] = on_all[roce] && has;
      on_any[roce] = on_any[roce] || has;
      least[roce] = std::min(least[roce], rate);
    }
  if (!on_any[0] || !on_any[1]) return;
  if (!on_all[0] && !on_all[1]) {
    for (size_t h = 0; h < situation.hosts.size(); ++h)
      if (!users_word(situation, h, "NCCL_IB_DISABLE"))
        choices.hosts[h].settings.push_back(
            {"NCCL_IB_DISABLE", "1", tr("some hosts have InfiniBand, others RoCE: they cannot be connected")});
    choices.remarks.push_back(tr("some hosts have InfiniBand, others RoCE: the job runs over sockets, many times slower"));
    return;
  }
  bool keep_roce = !on_all[0] || (on_all[1] && least[1] > least[0]);
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    if (users_word(situation, h, "NCCL_IB_HCA")) continue;
    std::vector<std::string> others;
    for (const doctor::LivePort& live : doctor::live_ports(situation.hosts[h].facts.infiniband))
      if (live.roce() != keep_roce && std::find(others.begin(), others.end(), live.device->name) == others.end())
        others.push_back(live.device->name);
    if (others.empty()) continue;
    std::string list = base::join(others, ",");
    const char* layer = keep_roce ? "InfiniBand" : "RoCE";
    choices.hosts[h].settings.push_back({"NCCL_IB_HCA", "^=" + list,
                                         tr("{} {} {}; NCCL cannot connect it to the selected {} ports", list,
                                            others.size() == 1 ? "is" : "are", layer, keep_roce ? "RoCE" : "InfiniBand")});
  }
}

}  // namespace

void choose_infiniband(const Situation& situation, Choices& choices) {
  if (situation.single() || std::none_of(choices.hosts.begin(), choices.hosts.end(), [](const HostChoice& c) { return c.has_gpus; }))
    return;
  std::vector<size_t> with, without;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    if (!situation.hosts[h].probed || users_word(situation, h, "NCCL_NET")) return;
    (doctor::verbs_usable(situation.hosts[h].facts.infiniband) ? with : without).push_back(h);
  }
  if (with.empty()) return;
  if (!without.empty()) return sockets_for_all(situation, with, without, choices);
  one_link_layer(situation, choices);
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (users_word(situation, h, "NCCL_IB_DISABLE").value_or("0") == "1")
      choices.remarks.push_back(tr("{}: your NCCL_IB_DISABLE=1 leaves working InfiniBand or RoCE unused", situation.hosts[h].name));
}

}  // namespace phalanx::job
