// The address of each host, and why that network.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "job/choose/parts.h"

namespace phalanx::job {
namespace {

using doctor::Situation;
using doctor::Words;
using words::tr;

std::string speed(int64_t mbps) {
  if (mbps <= 0) return "";
  return mbps % 1000 == 0 ? fmt::format(", {} Gbit/s", mbps / 1000) : fmt::format(", {} Mbit/s", mbps);
}

// Against the other networks all hosts share.
Words compared(const std::vector<Network>& shared, const Network& network) {
  size_t at = 0;
  while (at < shared.size() && shared[at].name != network.name) ++at;
  if (at > 0 && at < shared.size()) return tr("the first of {} shared networks that passed the connection test", shared.size());
  if (shared.size() < 2) return tr("the only network all hosts share");
  std::vector<std::string> others;
  for (const Network& n : shared)
    if (n.name != network.name && others.size() < 3) others.push_back(n.name + speed(n.speed_mbps));
  bool faster = network.speed_mbps > 0 && std::all_of(shared.begin(), shared.end(), [&](const Network& n) {
                  return n.name == network.name || n.speed_mbps < network.speed_mbps;
                });
  Words list;
  for (const std::string& other : others) list.add(tr("; "), tr("{}", other));
  return faster ? tr("the fastest network all hosts share (also: {})", list) : tr("first of the networks all hosts share (also: {})", list);
}

const machine::Interface* interface_of(const doctor::HostView& host, const std::string& name) {
  for (const machine::Interface& i : host.facts.network.interfaces)
    if (i.name == name) return &i;
  return nullptr;
}

// InfiniBand beside the network that was chosen, or as that network: the one choice that is often asked about.
Words about_ipoib(const Situation& situation, const std::vector<Network>& shared, const Network& network, size_t h) {
  auto is_ipoib = [&](const Network& n) {
    const machine::Interface* i = interface_of(situation.hosts[h], n.interfaces[h]);
    return i && i->kind == "infiniband";
  };
  if (is_ipoib(network)) {
    bool ethernet = std::any_of(shared.begin(), shared.end(), [&](const Network& n) { return !is_ipoib(n); });
    if (!ethernet) return {};
    return tr("IPoIB, because Ethernet here is at most 1 Gbit/s");
  }
  if (std::none_of(shared.begin(), shared.end(), is_ipoib)) return {};
  return tr("IPoIB is not used for the rendezvous: it depends on the subnet manager, and NCCL uses InfiniBand through verbs anyway");
}

// Hosts and the interfaces they have, for a refusal: the first host without the name stands for the others.
std::string interfaces_of(const doctor::HostView& host) {
  std::vector<std::string> names;
  for (const machine::Interface& i : host.facts.network.interfaces) names.push_back(i.name);
  return base::join(names, ", ");
}

// A name that --iface gives and that leads nowhere is refused: the job would otherwise use another network without a word.
void refuse_interface(const Situation& situation, const std::string& wanted, const std::vector<Network>& shared, Choices& choices) {
  std::vector<size_t> without;
  bool all_probed = true;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    const doctor::HostView& host = situation.hosts[h];
    all_probed = all_probed && host.probed;
    std::vector<std::string_view> names = base::split(wanted, ',');
    bool has = std::any_of(names.begin(), names.end(), [&](std::string_view name) { return interface_of(host, std::string(name)); });
    if (host.probed && !has) without.push_back(h);
  }
  if (!without.empty()) {
    const Words names = host_names(situation, without);
    const std::string there = interfaces_of(situation.hosts[without[0]]);
    choices.refusals.push_back(tr("--iface {}: {} {} no interface of this name; {} has {}", wanted, names,
                                  without.size() == 1 ? "has" : "have", situation.hosts[without[0]].name, there));
  } else if (all_probed && shared.empty() && !situation.single()) {
    choices.refusals.push_back(
        tr("--iface {}: the hosts share no network over this interface: it is down, is the loopback interface, or has no address that the "
           "other hosts can use",
           wanted));
  }
}

}  // namespace

void choose_address(const Situation& situation, const GpuRequest& wish, const Network& network, Choices& choices) {
  bool whole = network.addresses.size() == situation.hosts.size() && network.interfaces.size() == situation.hosts.size();
  std::vector<Network> shared = shared_networks(situation, wish.interface);
  std::map<std::string, int> owned = owners(situation);
  if (!wish.interface.empty()) refuse_interface(situation, wish.interface, shared, choices);
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    HostChoice& choice = choices.hosts[h];
    if (!whole) {
      choice.address_why = tr("no network common to all hosts was found");
      continue;
    }
    choice.address = network.addresses[h];
    choice.interface = network.interfaces[h];
    Words& why = choice.address_why;
    const machine::Interface* interface = interface_of(situation.hosts[h], choice.interface);
    std::string where = network.name + (interface ? speed(interface->speed_mbps) : "");
    auto add = [&](const Words& more) {
      if (!more.empty()) why.add(tr("; "), more);
    };
    if (!wish.interface.empty()) {
      add(tr("from --iface ({})", where));
      continue;
    }
    if (situation.single()) {
      add(tr("only one host: rendezvous on loopback"));
      continue;
    }
    if (network.routed) {
      add(tr("no network is common to all hosts: the source address that this host uses to reach the others"));
    } else {
      add(tr("{}", where));
      add(compared(shared, network));
      add(about_ipoib(situation, shared, network, h));
    }
    std::vector<std::string> nowhere = decoys(situation, h, owned);
    Words list;
    for (const std::string& name : nowhere) list.add(tr(", "), tr("{}", name));
    if (!nowhere.empty()) add(tr("{} {} to no other host", list, nowhere.size() == 1 ? "leads" : "lead"));
  }
}

}  // namespace phalanx::job
