// Names: whom they stand for, on which host, and one machine under two of them.
#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rendezvous/rendezvous.h"
#include "doctor/checks/rows.h"
#include "doctor/views/address_words.h"

namespace phalanx::doctor {
namespace {

bool several(const Situation& s) { return s.hosts.size() > 1; }

std::string list(const std::vector<std::string>& words) { return base::join(words, ", "); }

void name_loopback(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!several(s)) return;
  if (s.variable(h, "GLOO_SOCKET_IFNAME")) return;
  const machine::Resolved* own = resolved(host, host.facts.machine.hostname);
  if (!own || own->addresses.empty() || !is_loopback(own->addresses[0])) return;
  const std::string& line = host.facts.network.hosts_file_loopback_name;
  std::string said = line.empty() ? "" : fmt::format(" (/etc/hosts: {})", base::shell_quote(base::trim(line)));
  findings.on(h, tr("its own name {} is {}{}", own->name, own->addresses[0], said),
              host.interface.empty() ? "" : fmt::format("export GLOO_SOCKET_IFNAME={}", host.interface));
}

// Several containers of one machine are hosts of their own: they have names and addresses of their own.
bool same_addresses(const HostView& a, const HostView& b) {
  auto addresses = [](const HostView& h) {
    std::vector<std::string> all;
    for (const machine::Interface& i : h.facts.network.interfaces)
      for (const machine::InterfaceAddressFact& at : i.addresses)
        if (!i.loopback && !is_loopback(at.address) && at.address.rfind("fe80:", 0) != 0) all.push_back(at.address);
    std::sort(all.begin(), all.end());
    return all;
  };
  std::vector<std::string> of_a = addresses(a);
  return !of_a.empty() && of_a == addresses(b);
}

bool same_machine(const HostView& a, const HostView& b) {
  const machine::Machine &m = a.facts.machine, &n = b.facts.machine;
  return !m.boot_id.empty() && m.boot_id == n.boot_id && m.hostname == n.hostname && same_addresses(a, b);
}

void each_pair(const Situation& s, const std::function<void(size_t, size_t)>& visit) {
  for (size_t a = 0; a < s.hosts.size(); ++a)
    for (size_t b = a + 1; b < s.hosts.size(); ++b)
      if (s.hosts[a].probed && s.hosts[b].probed) visit(a, b);
}

void duplicate_hostname(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && !s.hosts[h].facts.machine.hostname.empty()) by_name[s.hosts[h].facts.machine.hostname].push_back(h);
  for (const auto& [name, hosts] : by_name) {
    if (hosts.size() < 2 || same_machine(s.hosts[hosts[0]], s.hosts[hosts[1]])) continue;
    size_t renamed = s.hosts[hosts[0]].name == name ? hosts[1] : hosts[0];
    findings.on(hosts, tr("both have the host name {}", name), fmt::format("sudo hostname {}", base::shell_quote(s.hosts[renamed].name)),
                s.hosts[renamed].name);
  }
}

void same_machine_twice(const Situation& s, Findings& findings) {
  each_pair(s, [&](size_t a, size_t b) {
    if (!same_machine(s.hosts[a], s.hosts[b])) return;
    findings.on({a, b}, tr("{} and {} are one machine (boot id {})", s.hosts[a].name, s.hosts[b].name, s.hosts[a].facts.machine.boot_id));
  });
}

// Cloned images: services that take it for an identity (DHCP leases, agents) mix the machines up.
void machine_id(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_id;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && !s.hosts[h].facts.machine.machine_id.empty()) by_id[s.hosts[h].facts.machine.machine_id].push_back(h);
  for (const auto& [id, hosts] : by_id) {
    if (hosts.size() < 2 || !s.hosts[hosts[0]].facts.machine.container.empty()) continue;
    if (s.hosts[hosts[0]].facts.machine.boot_id == s.hosts[hosts[1]].facts.machine.boot_id) continue;  // one machine
    findings.on(hosts, tr("/etc/machine-id is {} on each", id), "sudo rm /etc/machine-id && sudo systemd-machine-id-setup");
  }
}

void host_id(const Situation& s, Findings& findings) {
  if (!s.job.wants_gpus) return;
  std::map<std::string, std::vector<size_t>> by_id;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed)
      if (std::optional<std::string> id = s.variable(h, "NCCL_HOSTID"); id && !id->empty()) by_id[*id].push_back(h);
  for (const auto& [id, hosts] : by_id) {
    if (hosts.size() < 2 || s.hosts[hosts[0]].facts.machine.boot_id == s.hosts[hosts[1]].facts.machine.boot_id) continue;
    findings.on(hosts, tr("NCCL_HOSTID is {} on {} hosts", id, hosts.size()), "unset NCCL_HOSTID");
  }
}

void master_unknown(const Situation& s, Findings& findings) {
  const std::string& name = s.job.master_address;
  if (name.empty() || is_numeric(name)) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const machine::Resolved* r = s.hosts[h].probed ? resolved(s.hosts[h], name) : nullptr;
    if (!r || !r->addresses.empty() || r->error.empty()) continue;
    findings.on(h, tr("{}: {}", name, r->error), "getent hosts " + base::shell_quote(name));
  }
}

void name_unknown(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!several(s)) return;
  std::vector<std::string> unknown;
  for (const machine::Resolved& r : host.facts.network.names)
    if (r.addresses.empty() && !r.error.empty() && r.name != s.job.master_address) unknown.push_back(r.name);
  if (unknown.empty()) return;
  findings.on(h, tr("cannot resolve {}", list(unknown)), "getent hosts " + base::shell_quote(unknown[0]));
}

// What a host says another's name stands for must be an address of that other.
void name_stale(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].probed) continue;
    for (size_t other = 0; other < s.hosts.size(); ++other) {
      const HostView& peer = s.hosts[other];
      const machine::Resolved* r = resolved(s.hosts[h], peer.name);
      if (h == other || !peer.probed || !r || r->addresses.empty() || peer.facts.network.interfaces.empty()) continue;
      if (std::any_of(r->addresses.begin(), r->addresses.end(), [&](const std::string& a) { return has_address(peer, a); })) continue;
      std::string own = peer.address.empty() ? "" : peer.address;
      findings.on(h,
                  tr("{} is {} here, an address that {} does not have{}", peer.name, list(r->addresses), peer.name,
                     own.empty() ? Words{} : tr(" (it has {})", own)),
                  "getent hosts " + base::shell_quote(peer.name));
    }
  }
}

void names_disagree(const Situation& s, Findings& findings) {
  const std::string& name = s.job.master_address;
  if (name.empty() || is_numeric(name)) return;
  std::map<std::vector<std::string>, std::vector<size_t>> by_answer;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const machine::Resolved* r = s.hosts[h].probed ? resolved(s.hosts[h], name) : nullptr;
    if (!r || r->addresses.empty() || std::all_of(r->addresses.begin(), r->addresses.end(), is_loopback)) continue;
    std::vector<std::string> sorted = r->addresses;
    std::sort(sorted.begin(), sorted.end());
    by_answer[sorted].push_back(h);
  }
  if (by_answer.size() < 2) return;
  // Different addresses of one machine are all right: split names of a host with several networks.
  for (const HostView& h : s.hosts)
    if (h.probed && std::all_of(by_answer.begin(), by_answer.end(), [&](const auto& answer) { return has_address(h, answer.first[0]); }))
      return;
  auto usual =
      std::max_element(by_answer.begin(), by_answer.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  for (const auto& [addresses, hosts] : by_answer) {
    if (addresses == usual->first) continue;
    findings.on(hosts, tr("{} is {} here, {} elsewhere", name, list(addresses), list(usual->first)),
                "getent hosts " + base::shell_quote(name));
  }
}

constexpr Row kNameRows[] = {
    {"RDZV-NAME-LOOPBACK", Severity::kWarning, name_loopback},
    {"RDZV-DUPLICATE-HOSTNAME", Severity::kWarning, duplicate_hostname},
    {"RDZV-SAME-MACHINE", Severity::kWarning, same_machine_twice},
    {"RDZV-MACHINE-ID", Severity::kNote, machine_id},
    {"RDZV-HOSTID", Severity::kError, host_id},
    {"RDZV-MASTER-UNKNOWN", Severity::kError, master_unknown},
    {"RDZV-NAME-UNKNOWN", Severity::kNote, name_unknown},
    {"RDZV-NAME-STALE", Severity::kWarning, name_stale},
    {"RDZV-NAMES-DISAGREE", Severity::kWarning, names_disagree},
};

}  // namespace

std::span<const Row> name_rows() { return kNameRows; }

}  // namespace phalanx::doctor
