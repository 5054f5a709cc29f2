// What the user wrote into NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and NCCL_SOCKET_FAMILY, host by host.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/network_view.h"

namespace phalanx::doctor {
namespace {

// Interfaces with an address, as a person would look for them.
std::string present(const HostView& view) {
  std::string text;
  for (const machine::Interface& i : view.facts.network.interfaces)
    if (!i.loopback && !i.addresses.empty()) text += (text.empty() ? "" : ", ") + i.name;
  return text;
}

struct Named {
  std::string variable, value;
  bool used = false;  // by this job, certainly
};

// The variables that lead to no interface on that host.
std::vector<Named> missing_on(const Situation& s, size_t h) {
  std::vector<Named> all;
  if (s.hosts[h].facts.network.interfaces.empty()) return all;
  std::string nccl = job_setting(s, h, "NCCL_SOCKET_IFNAME");
  std::optional<machine::SocketChoice> choice = nccl_choice_of(s, h);
  if (nccl.size() > 1 && choice && choice->interface.empty())
    all.push_back({"NCCL_SOCKET_IFNAME", nccl, uses_nccl(s, h) || set_for_job(s, "NCCL_SOCKET_IFNAME")});
  std::string gloo = job_setting(s, h, "GLOO_SOCKET_IFNAME");
  choice = gloo_choice_of(s, h);
  if (!gloo.empty() && choice && choice->interface.empty())
    all.push_back({"GLOO_SOCKET_IFNAME", gloo, uses_gloo(s, h) || set_for_job(s, "GLOO_SOCKET_IFNAME")});
  return all;
}

void missing(const Situation& s, Findings& findings, bool used) {
  for (size_t h : probed(s))
    for (const Named& n : missing_on(s, h)) {
      if (n.used != used) continue;
      const HostView& view = s.hosts[h];
      std::string here = present(view);
      const machine::Interface* chosen = chosen_interface(view);
      std::string better = chosen && !chosen->loopback ? chosen->name : "";
      findings.on(
          h, tr("{}={} matches no usable interface here; the interfaces are {}", n.variable, n.value, here),
          better.empty() ? "unset " + n.variable : fmt::format("export {}={}{}", n.variable, n.variable[0] == 'N' ? "=" : "", better));
    }
}
void missing_used(const Situation& s, Findings& f) { missing(s, f, true); }
void missing_unused(const Situation& s, Findings& f) { missing(s, f, false); }

// "eth0" without "=" also takes eth01: only where the exact one exists, else a prefix was meant.
void prefix(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::string value = job_setting(s, h, "NCCL_SOCKET_IFNAME");
  if (value.size() < 2 || value[0] == '^' || value[0] == '=') return;
  std::vector<machine::ListedAddress> listed = machine::listed_addresses(host.facts.network.interfaces);
  for (std::string_view word : base::split(value, ',')) {
    bool exact = false;
    std::string others;
    for (const machine::ListedAddress& a : listed) {
      if (a.name == word) exact = true;
      else if (!word.empty() && !a.v6 && a.interface != word && a.name.substr(0, word.size()) == word)
        others += fmt::format("{}{} {}/{}", others.empty() ? "" : ", ", a.name, a.address, a.prefix);
    }
    if (!exact || others.empty()) continue;
    findings.on(h, tr("NCCL_SOCKET_IFNAME={} also takes {}", value, others), "export NCCL_SOCKET_IFNAME==" + value);
  }
}

void needless(const Situation& s, Findings& findings) {
  std::vector<size_t> hosts;
  std::string value;
  for (size_t h : probed(s)) {
    machine::NcclSettings settings = nccl_settings_of(s, h);
    std::optional<machine::SocketChoice> with = nccl_choice_of(s, h);
    if (settings.ifname.size() < 2 || !with || with->interface.empty()) return;
    value = settings.ifname;
    settings.ifname.clear();
    if (machine::nccl_choice(s.hosts[h].facts.network.interfaces, settings).address != with->address) return;
    hosts.push_back(h);
  }
  if (hosts.empty()) return;
  findings.on(hosts, tr("NCCL_SOCKET_IFNAME={}: NCCL would choose the same address without it", value));
}

void blanks(const Situation& s, size_t h, const HostView&, Findings& findings) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    std::string value = job_setting(s, h, name);
    if (value.find_first_of(" \t\"'") == std::string::npos) continue;
    std::string clean = value;
    std::erase_if(clean, [](char c) { return base::is_blank(c) || c == '"' || c == '\''; });
    findings.on(h, tr("{}=\"{}\" contains spaces or quotes", name, value), fmt::format("export {}={}", name, clean));
  }
}

void gloo_syntax(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::string value = job_setting(s, h, "GLOO_SOCKET_IFNAME");
  bool pattern = !value.empty() && (value[0] == '^' || value[0] == '=');
  const machine::Interface* chosen = chosen_interface(host);
  if (pattern)
    findings.on(h, tr("GLOO_SOCKET_IFNAME={}: Gloo accepts only complete names", value),
                chosen && !chosen->loopback ? "export GLOO_SOCKET_IFNAME=" + chosen->name : "unset GLOO_SOCKET_IFNAME");
}

void family(const Situation& s, size_t h, const HostView&, Findings& findings) {
  std::string value = job_setting(s, h, "NCCL_SOCKET_FAMILY");
  if (value.empty() || value == "AF_INET" || value == "AF_INET6") return;
  std::string meant = value.find('6') != std::string::npos ? "AF_INET6" : "AF_INET";
  findings.on(h, tr("NCCL_SOCKET_FAMILY={} is neither AF_INET nor AF_INET6; NCCL silently ignores it", value),
              "export NCCL_SOCKET_FAMILY=" + meant);
}

constexpr Row kNetworkIfnameRows[] = {
    {"NET-IFNAME-MISSING", Severity::kError, missing_used},
    {"NET-IFNAME-STRAY", Severity::kNote, missing_unused},
    {"NET-IFNAME-PREFIX", Severity::kWarning, prefix},
    {"NET-IFNAME-NEEDLESS", Severity::kNote, needless},
    {"NET-IFNAME-BLANK", Severity::kWarning, blanks},
    {"NET-GLOO-SYNTAX", Severity::kWarning, gloo_syntax},
    {"NET-FAMILY", Severity::kWarning, family},
};

}  // namespace

std::span<const Row> network_ifname_rows() { return kNetworkIfnameRows; }

}  // namespace phalanx::doctor
