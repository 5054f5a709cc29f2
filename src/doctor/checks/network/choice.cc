// Which address NCCL and Gloo would take by themselves, and whether the other hosts could reach it there.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/network_view.h"
#include "machine/network/text.h"

namespace phalanx::doctor {
namespace {

struct Choice {
  size_t host = 0;
  machine::SocketChoice choice;
  const machine::Interface* interface = nullptr;  // may be null: an alias
  std::string network;
};

// NCCL's choice on every host where it is known and there is one.
std::vector<Choice> nccl_choices(const Situation& s) {
  std::vector<Choice> all;
  for (size_t h : probed(s)) {
    std::optional<machine::SocketChoice> c = nccl_choice_of(s, h);
    if (!c || c->interface.empty()) continue;
    Choice out{h, *c, nullptr, ""};
    for (const machine::Interface& i : s.hosts[h].facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (a.address == c->address) out.interface = &i, out.network = machine::network_of(a.address, a.prefix);
    all.push_back(std::move(out));
  }
  return all;
}

bool is_decoy_kind(const std::string& kind) {
  return kind == "bridge" || kind == "docker" || kind == "veth" || kind == "virtual" || kind == "vpn" || kind == "loopback";
}

std::string set_variables(const Situation& s, size_t h) {
  const machine::Interface* chosen = chosen_interface(s.hosts[h]);
  if (!chosen || chosen->loopback) return "";
  return fmt::format("export NCCL_SOCKET_IFNAME=={0} GLOO_SOCKET_IFNAME={0}", chosen->name);
}

std::string brief(const Choice& c) { return fmt::format("{} {} ({})", c.choice.interface, c.choice.address, c.choice.why); }

// Hosts that NCCL would give one and the same address. Two entries for one machine are another finding's matter.
std::vector<std::vector<Choice>> sharing(const Situation& s) {
  std::vector<std::vector<Choice>> groups;
  for (const Choice& c : nccl_choices(s)) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g[0].choice.address == c.choice.address; });
    if (same == groups.end()) groups.push_back({c});
    else same->push_back(c);
  }
  std::erase_if(groups, [&](const auto& group) {
    std::set<std::string> machines;
    for (const Choice& c : group) machines.insert(network_stack(s.hosts[c.host]));
    return group.size() < 2 || (machines.size() < 2 && !machines.count(""));
  });
  return groups;
}

void decoy(const Situation& s, Findings& findings, bool by_user) {
  for (const std::vector<Choice>& group : sharing(s)) {
    if ((nccl_settings_of(s, group[0].host).ifname.size() > 1) != by_user) continue;
    std::vector<size_t> hosts;
    for (const Choice& c : group) hosts.push_back(c.host);
    findings.on(hosts, tr("NCCL would choose {} on all of them; each would connect to itself", brief(group[0])),
                set_variables(s, group[0].host));
  }
}
void same_decoy(const Situation& s, Findings& f) { decoy(s, f, false); }
void ifname_decoy(const Situation& s, Findings& f) { decoy(s, f, true); }

bool routed(const Situation& s, const Choice& c) {  // as far as is known, every other host has a way there
  bool known = false;
  for (size_t h : probed(s))
    for (const machine::Route& r : s.hosts[h].facts.network.routes) {
      if (h == c.host || r.to != c.choice.address) continue;
      if (!r.error.empty()) return false;
      known = true;
    }
  return known;
}

void wrong_interface(const Situation& s, Findings& findings) {
  std::vector<Choice> all = nccl_choices(s);
  std::set<std::string> networks;
  for (const Choice& c : all) networks.insert(c.network);
  if (all.size() < 2 || networks.size() < 2) return;
  for (const Choice& c : all) {
    const HostView& view = s.hosts[c.host];
    std::string right = network_of_chosen(view);
    if (view.address.empty() || right.empty() || c.choice.address == view.address || c.network == right) continue;
    bool alone = std::count_if(all.begin(), all.end(), [&](const Choice& o) { return o.network == c.network; }) == 1;
    bool doubtful = (c.interface && is_decoy_kind(c.interface->kind)) || !routed(s, c);
    if (!alone || !doubtful) continue;
    findings.on(c.host, tr("NCCL would choose {}; the hosts share {}, here {} on {}", brief(c), right, view.address, view.interface),
                set_variables(s, c.host));
  }
}

void down_interface(const Situation& s, Findings& findings) {
  for (const Choice& c : nccl_choices(s)) {
    if (s.single() || !c.interface || c.interface->running || c.interface->loopback) continue;
    findings.on(
        c.host,
        tr("NCCL {} would choose {}, which is not running (state {})",
           s.hosts[c.host].facts.software.nccl.empty() ? "" : s.hosts[c.host].facts.software.nccl[0].version, brief(c), c.interface->state),
        set_variables(s, c.host));
  }
}

void link_local(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const Choice& c : nccl_choices(s))
    if (machine::is_link_local_address(c.choice.address))
      findings.on(c.host, tr("NCCL would choose {}, a link-local address", brief(c)),
                  c.choice.address.find(':') != std::string::npos ? "export NCCL_SOCKET_FAMILY=AF_INET" : set_variables(s, c.host));
}

void docker_bridge(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const Choice& c : nccl_choices(s)) {
    const HostView& view = s.hosts[c.host];
    if (view.facts.machine.container.empty() || machine::network_of(c.choice.address, 16) != "172.17.0.0/16") continue;
    bool reached = false;
    for (size_t other = 0; other < s.hosts.size(); ++other) reached |= view.address == c.choice.address && link_passed(s, c.host, other);
    if (!reached) findings.on(c.host, tr("in a container ({}) with {} of docker's own bridge", view.facts.machine.container, brief(c)));
  }
}

void vpn_path(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (s.single()) return;
  if (const machine::Interface* i = chosen_interface(host); i && i->kind == "vpn")
    findings.on(h, tr("the hosts would connect over {} {}, a VPN", i->name, host.address));
}

constexpr Row kNetworkChoiceRows[] = {
    {"NET-SAME-DECOY", Severity::kWarning, same_decoy},       {"NET-IFNAME-DECOY", Severity::kError, ifname_decoy},
    {"NET-WRONG-IFACE", Severity::kWarning, wrong_interface}, {"NET-DOWN-IFACE", Severity::kWarning, down_interface},
    {"NET-LINK-LOCAL", Severity::kWarning, link_local},       {"NET-DOCKER-BRIDGE", Severity::kWarning, docker_bridge},
    {"NET-VPN-PATH", Severity::kWarning, vpn_path},
};

}  // namespace

std::span<const Row> network_choice_rows() { return kNetworkChoiceRows; }

}  // namespace phalanx::doctor
