// Speed and health of the links: what was negotiated, what passed in the mesh test, what the counters say.
#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/mesh_view.h"
#include "doctor/views/network_view.h"

namespace phalanx::doctor {
namespace {

// A burst is short and the machines may be busy: a host is called slow only where the best of its links in one direction is far below
// the median of the links it has no part in. With two hosts there is no third to compare with, so the ways there and back are compared.
constexpr int64_t kSlowRatio = 3, kSlowRatioOfTwo = 8;
constexpr int64_t kSlowMargin = 30'000'000, kSlowOfTwo = 125'000'000, kFastOfTwo = 250'000'000;  // bytes per second
// Above 10 Gbit/s the rate of one short stream is the processors', not the link's.
constexpr int64_t kProcessorBound = 1'250'000'000;
constexpr int64_t kMostChanges = 12, kMostChangesUnknownTime = 100, kMostChangesPerDay = 5;
constexpr int64_t kFewLost = 10;    // packets in all: a host that gets little of a processor is late with some answers
constexpr int64_t kMostLost = 100;  // of 10,000: a full queue costs a burst a few, a bad cable many

int64_t median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<const hosts::Link*> measured(const Situation& s) {
  std::vector<const hosts::Link*> links = links_of(s);
  std::erase_if(links, [](const hosts::Link* l) { return l->outcome != wire::LinkOutcome::kOk || l->bytes_per_second <= 0; });
  return links;
}

void report_slow(Findings& findings, size_t host, bool out, int64_t best, int64_t usual) {
  findings.on(host, tr("{} {} at most, against {} between the others", out ? tr("sends") : tr("receives"), rate(best), rate(usual)));
}

void slow_of_two(const std::vector<const hosts::Link*>& links, Findings& findings) {
  if (links.size() != 2) return;
  const hosts::Link* slow = links[0]->bytes_per_second < links[1]->bytes_per_second ? links[0] : links[1];
  const hosts::Link* fast = slow == links[0] ? links[1] : links[0];
  if (slow->bytes_per_second * kSlowRatioOfTwo > fast->bytes_per_second || slow->bytes_per_second > kSlowOfTwo ||
      fast->bytes_per_second < kFastOfTwo)
    return;
  auto from = static_cast<size_t>(slow->from), to = static_cast<size_t>(slow->to);
  findings.on({from, to}, tr("{} one way, {} the other", rate(slow->bytes_per_second), rate(fast->bytes_per_second)));
}

void slow_link(const Situation& s, Findings& findings) {
  std::vector<const hosts::Link*> links = measured(s);
  if (s.hosts.size() == 2) return slow_of_two(links, findings);
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<int64_t> others;
    for (const hosts::Link* l : links)
      if (static_cast<size_t>(l->from) != h && static_cast<size_t>(l->to) != h) others.push_back(l->bytes_per_second);
    int64_t usual = median(others);
    if (others.size() < 2) continue;
    for (bool out : {true, false}) {
      int64_t best = 0, count = 0;
      for (const hosts::Link* l : links)
        if (static_cast<size_t>(out ? l->from : l->to) == h) best = std::max(best, l->bytes_per_second), ++count;
      if (count >= 2 && best < kProcessorBound && best * kSlowRatio < usual && usual - best > kSlowMargin)
        report_slow(findings, h, out, best, usual);
    }
  }
}

void loss(const Situation& s, Findings& findings) {
  std::vector<const hosts::Link*> links = links_of(s);
  std::erase_if(links, [](const hosts::Link* l) { return l->outcome != wire::LinkOutcome::kOk; });
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<int64_t> mine, others;
    int64_t lost = 0;
    for (const hosts::Link* l : links) {
      if (l->segments > 0) (touches(*l, h) ? mine : others).push_back(l->retransmits * 10'000 / l->segments);
      if (touches(*l, h)) lost += l->retransmits;
    }
    if (lost < kFewLost || mine.size() < 4 || others.size() < 2) continue;
    int64_t here = median(mine), there = median(others);
    if (here < kMostLost || here < 10 * there) continue;
    findings.on(h, tr("{} of 10,000 packets are retransmitted, compared with {} between the others", here, there));
  }
}

std::optional<std::string> speed_of(const HostView& view) {
  const machine::Interface* i = chosen_interface(view);
  if (!i || i->speed_mbps <= 0 || (i->kind != "physical" && i->kind != "bond" && i->kind != "infiniband")) return std::nullopt;
  return std::to_string(i->speed_mbps);
}

void speed_differs(const Situation& s, Findings& findings) {
  for (const Odd& odd : odd_ones(s, speed_of)) {
    int64_t mine = std::atoll(odd.value.c_str()), usual = std::atoll(odd.usual.c_str());
    if (mine >= usual) continue;
    for (size_t h : odd.hosts) {
      const std::string& name = chosen_interface(s.hosts[h])->name;
      findings.on(h, tr("{} runs at {} Mbit/s; {} at {}", name, mine, names(s, odd.others), usual), fmt::format("sudo ethtool {}", name));
    }
  }
}

bool has_active_ib(const HostView& view) {
  for (const machine::IbDevice& d : view.facts.infiniband.devices)
    for (const machine::IbPort& p : d.ports)
      if (p.state == "ACTIVE") return true;
  return false;
}

void slow_card(const Situation& s, Findings& findings) {
  if (s.single()) return;
  std::vector<size_t> hosts;
  for (size_t h : probed(s)) {
    std::optional<std::string> speed = speed_of(s.hosts[h]);
    if (speed && std::atoll(speed->c_str()) <= 1000 && uses_nccl(s, h) && !has_active_ib(s.hosts[h])) hosts.push_back(h);
  }
  for (size_t h : hosts) {
    const machine::Interface* i = chosen_interface(s.hosts[h]);
    std::string faster;
    for (const machine::Interface& other : s.hosts[h].facts.network.interfaces)
      if (other.running && other.speed_mbps > i->speed_mbps && other.kind == "physical")
        faster += fmt::format("{}{} {}", faster.empty() ? "" : ", ", other.name, other.speed_mbps);
    findings.on(h, tr("{} at {} Mbit/s carries all gradients{}", i->name, i->speed_mbps,
                      faster.empty() ? Words{} : tr("; faster here: {}", faster)));
  }
}

void receive_errors(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::Interface* i = chosen_interface(host);
  if (!i || i->rx_errors < 1000 || i->rx_packets <= 0 || i->rx_errors * 10'000 < i->rx_packets) return;
  findings.on(h, tr("{}: {} of {} packets came with errors", i->name, i->rx_errors, i->rx_packets),
              fmt::format("sudo ethtool -S {}", i->name));
}

void mtu_differs(const Situation& s, Findings& findings) {
  auto mtu = [](const HostView& view) -> std::optional<std::string> {
    const machine::Interface* i = chosen_interface(view);
    if (!i || i->loopback || i->mtu <= 0) return std::nullopt;
    return std::to_string(i->mtu);
  };
  for (const Odd& odd : odd_ones(s, mtu))
    for (size_t h : odd.hosts) {
      const std::string& name = chosen_interface(s.hosts[h])->name;
      findings.on(h, tr("{} has MTU {}; {} have {}", name, odd.value, names(s, odd.others), odd.usual),
                  fmt::format("sudo ip link set dev {} mtu {}", name, odd.usual));
    }
}

void flaps(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::NetworkFacts& n = host.facts.network;
  const machine::Interface* chosen = chosen_interface(host);
  for (const machine::Interface& i : n.interfaces) {
    bool wanted = &i == chosen || (chosen && i.master == chosen->name) || (i.kind == "infiniband" && !i.addresses.empty());
    if (!wanted || i.carrier_changes < kMostChanges) continue;
    bool often =
        n.uptime_s > 0 ? i.carrier_changes * 86'400 >= kMostChangesPerDay * n.uptime_s : i.carrier_changes >= kMostChangesUnknownTime;
    if (!often) continue;
    std::string since = n.uptime_s > 0 ? base::counted(" in {:.1f} days", static_cast<double>(n.uptime_s) / 86'400) : "";
    findings.on(h, tr("{} lost or found its carrier {} times{}", i.name, i.carrier_changes, since),
                fmt::format("sudo dmesg | grep -i {} | tail", i.name));
  }
}

void bond_degraded(const Situation&, size_t h, const HostView& host, Findings& findings) {
  for (const machine::Interface& i : host.facts.network.interfaces) {
    std::string down;
    for (const machine::BondSlave& slave : i.slaves)
      if (!slave.up) down += (down.empty() ? "" : ", ") + slave.name;
    if (i.kind != "bond" || down.empty() || i.addresses.empty()) continue;
    findings.on(h, tr("{}: {} of its {} links is down", i.name, down, i.slaves.size()), "cat /proc/net/bonding/" + i.name);
  }
}

void bond_unequal(const Situation&, size_t h, const HostView& host, Findings& findings) {
  for (const machine::Interface& i : host.facts.network.interfaces) {
    int64_t least = 0, most = 0;
    for (const machine::BondSlave& slave : i.slaves) {
      if (!slave.up || slave.speed_mbps <= 0) continue;
      least = least == 0 ? slave.speed_mbps : std::min(least, slave.speed_mbps);
      most = std::max(most, slave.speed_mbps);
    }
    if (least == most) continue;
    findings.on(h, tr("{}: its links run at {} and {} Mbit/s", i.name, least, most));
  }
}

constexpr Row kNetworkLinkRows[] = {
    {"NET-SLOW-LINK", Severity::kWarning, slow_link},
    {"NET-LOSS", Severity::kWarning, loss},
    {"NET-SPEED-DIFFERS", Severity::kWarning, speed_differs},
    {"NET-SLOW-NIC", Severity::kWarning, slow_card},
    {"NET-RX-ERRORS", Severity::kWarning, receive_errors},
    {"NET-MTU-DIFFERS", Severity::kWarning, mtu_differs},
    {"NET-FLAPS", Severity::kWarning, flaps},
    {"NET-BOND-DEGRADED", Severity::kWarning, bond_degraded},
    {"NET-BOND-UNEQUAL", Severity::kNote, bond_unequal},
};

}  // namespace

std::span<const Row> network_link_rows() { return kNetworkLinkRows; }

}  // namespace phalanx::doctor
