// NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: set only where what the libraries would take by themselves is wrong. Their rules are
// replayed on each host (machine/network/nccl_interface.h); here the answers of all hosts are held against each other.
//
// NCCL's bootstrap takes the first interface of its list, but its socket transport takes them all (up to 16: NCCL,
// src/transport/net_socket.cc, MAX_IFS): an interface further down the list that leads nowhere breaks the job too, unless verbs carry
// the data. Interfaces that are equally fast and shared by all hosts are left to it: that is its multi-rail.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/verbs.h"
#include "job/choose/parts.h"
#include "machine/network/nccl_interface.h"

namespace phalanx::job {
namespace {

using doctor::HostView;
using doctor::Situation;
using doctor::Words;
using machine::SocketChoice;
using words::tr;

const SocketChoice* replay(const HostView& host, const std::string& library) {
  for (const SocketChoice& c : host.facts.network.choices)
    if (c.library == library) return &c;
  return nullptr;
}

// All hosts would take addresses of one network that they share: they meet, even if it is not the network we chose.
bool together(const Situation& situation, const std::vector<Network>& shared, const std::string& library) {
  return std::any_of(shared.begin(), shared.end(), [&](const Network& n) {
    for (size_t h = 0; h < situation.hosts.size(); ++h) {
      const SocketChoice* c = replay(situation.hosts[h], library);
      if (!c || c->address != n.addresses[h]) return false;
    }
    return true;
  });
}

bool starts_with(const std::string& text, std::string_view prefix) { return text.compare(0, prefix.size(), prefix) == 0; }

// What NCCL's socket transport would use of a host.
std::vector<std::string> nccl_takes(const HostView& host) {
  const machine::SoftwareFacts& software = host.facts.software;
  int version = software.nccl.empty() ? 0 : machine::nccl_version(software.nccl[0].version);
  std::vector<std::string> names;
  for (const machine::ListedAddress& a : machine::nccl_interfaces(machine::listed_addresses(host.facts.network.interfaces),
                                                                  machine::nccl_settings(software.environment, version))
                                             .interfaces)
    names.push_back(a.interface);
  return names;
}

// Interfaces of a host that are as good as the chosen one.
std::vector<std::string> rails(const std::vector<Network>& shared, const Network& network, size_t h) {
  std::vector<std::string> names{network.interfaces[h]};
  for (const Network& n : shared)
    if (network.speed_mbps > 0 && n.speed_mbps == network.speed_mbps &&
        std::find(names.begin(), names.end(), n.interfaces[h]) == names.end())
      names.push_back(n.interfaces[h]);
  return names;
}

bool verbs_carry(const Situation& situation) {
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    std::string net = base::to_lower(users_word(situation, h, "NCCL_NET").value_or(""));
    if (!doctor::verbs_usable(situation.hosts[h].facts.infiniband) || users_word(situation, h, "NCCL_IB_DISABLE").value_or("0") == "1" ||
        net == "socket")
      return false;
  }
  return true;
}

// Why NCCL's own choice on this host will not do; none: it will.
std::optional<Words> nccl_errs(const Situation& situation, const Network& network, const std::vector<std::string>& good, bool verbs,
                               size_t h) {
  const HostView& host = situation.hosts[h];
  const SocketChoice* c = replay(host, "nccl");
  if (!c) return tr("NCCL's own choice is not known");
  if (std::find(good.begin(), good.end(), c->interface) == good.end()) {
    if (c->interface.empty()) return tr("NCCL would not find an interface by itself");
    return tr("NCCL would choose {} by itself; the hosts connect over {}", c->interface, network.interfaces[h]);
  }
  std::vector<std::string> extra;
  for (const std::string& name : nccl_takes(host))
    if (std::find(good.begin(), good.end(), name) == good.end()) extra.push_back(name);
  if (verbs || extra.empty()) return std::nullopt;
  std::string list = base::join(extra, ", ");
  return tr("NCCL would also send over {}", list);
}

void remark_on(const Situation& situation, size_t h, const char* variable, const std::string& value, const SocketChoice* took,
               const Network& network, Choices& choices) {
  if (!took || took->address == network.addresses[h]) return;
  std::string got = took->interface.empty() ? "" : took->interface + " " + took->address;
  const std::string& name = situation.hosts[h].name;
  if (got.empty()) choices.remarks.push_back(tr("{}: your {}={} matches no interface", name, variable, value));
  else
    choices.remarks.push_back(
        tr("{}: your {}={} selects {}; the hosts connect over {} ({})", name, variable, value, got, network.interfaces[h], network.name));
}

void choose_nccl(const Situation& situation, const std::vector<Network>& shared, const Network& network, bool by_word, Choices& choices) {
  if (std::none_of(choices.hosts.begin(), choices.hosts.end(), [](const HostChoice& c) { return c.has_gpus; })) return;
  bool verbs = verbs_carry(situation), meets = together(situation, shared, "nccl");
  std::vector<std::optional<Words>> errs(situation.hosts.size());
  bool any = false;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    if (std::optional<std::string> set = users_word(situation, h, "NCCL_SOCKET_IFNAME")) {
      if (!meets) remark_on(situation, h, "NCCL_SOCKET_IFNAME", *set, replay(situation.hosts[h], "nccl"), network, choices);
      continue;
    }
    if (verbs && meets && !by_word) continue;
    errs[h] = nccl_errs(situation, network, rails(shared, network, h), verbs, h);
    any = any || errs[h];
  }
  for (size_t h = 0; any && h < situation.hosts.size(); ++h)
    if (!users_word(situation, h, "NCCL_SOCKET_IFNAME"))  // '=': these names exactly, not all that start with them (NCCL user guide)
      choices.hosts[h].settings.push_back({"NCCL_SOCKET_IFNAME", "=" + base::join(rails(shared, network, h), ","),
                                           errs[h].value_or(tr("the same network as on the other hosts"))});
}

// Gloo listens on the address that the host's own name resolves to, and on loopback if that is none of its own.
void choose_gloo(const Situation& situation, const std::vector<Network>& shared, const Network& network, bool by_word, Choices& choices) {
  bool meets = together(situation, shared, "gloo") && !by_word;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    const SocketChoice* c = replay(situation.hosts[h], "gloo");
    if (std::optional<std::string> set = users_word(situation, h, "GLOO_SOCKET_IFNAME")) {
      if (!meets) remark_on(situation, h, "GLOO_SOCKET_IFNAME", *set, c, network, choices);
      continue;
    }
    if (meets || (c && c->address == network.addresses[h])) continue;
    Words why = tr("Gloo's own choice is not known");
    if (c && (starts_with(c->address, "127.") || c->address == "::1"))
      why = tr("the host's own name resolves to {}: Gloo would listen on an address that no other host can reach", c->address);
    else if (c && !c->address.empty()) why = tr("Gloo would choose {} {} by itself", c->interface, c->address);
    choices.hosts[h].settings.push_back({"GLOO_SOCKET_IFNAME", network.interfaces[h], why});
  }
}

// One host: loopback is as good an answer as any, unless the question takes seconds.
void spare_the_resolver(const Situation& situation, const Network& network, Choices& choices) {
  constexpr int64_t kSlowNs = 1'000'000'000;
  const std::vector<machine::Resolved>& names = situation.hosts[0].facts.network.names;
  if (names.empty() || names[0].took_ns < kSlowNs || network.interfaces.empty() || users_word(situation, 0, "GLOO_SOCKET_IFNAME")) return;
  double seconds = static_cast<double>(names[0].took_ns) / 1e9;
  choices.hosts[0].settings.push_back({"GLOO_SOCKET_IFNAME", network.interfaces[0],
                                       tr("Gloo would look up the host's own name first, which takes {:.1f} s here", seconds)});
}

}  // namespace

void choose_interfaces(const Situation& situation, const GpuRequest& wish, const Network& network, Choices& choices) {
  if (network.addresses.size() != situation.hosts.size() || situation.hosts.empty()) return;
  if (situation.single()) return spare_the_resolver(situation, network, choices);
  std::vector<Network> shared = shared_networks(situation, wish.interface);
  if (network.routed) shared = {network};
  choose_nccl(situation, shared, network, !wish.interface.empty(), choices);
  choose_gloo(situation, shared, network, !wish.interface.empty(), choices);
}

}  // namespace phalanx::job
