#include "doctor/views/network_view.h"

#include <algorithm>

#include "doctor/examine.h"
#include "machine/network/text.h"

namespace phalanx::doctor {

const machine::Interface* interface_named(const HostView& view, const std::string& name) {
  for (const machine::Interface& i : view.facts.network.interfaces)
    if (i.name == name) return &i;
  return nullptr;
}

const machine::Interface* chosen_interface(const HostView& view) {
  if (!view.address.empty())
    for (const machine::Interface& i : view.facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (a.address == view.address) return &i;
  return view.interface.empty() ? nullptr : interface_named(view, view.interface);
}

std::string network_of_chosen(const HostView& view) {
  for (const machine::Interface& i : view.facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses)
      if (!view.address.empty() && a.address == view.address) return machine::network_of(a.address, a.prefix);
  return "";
}

std::string job_setting(const Situation& s, size_t h, const std::string& name) {
  if (std::optional<std::string> value = s.variable(h, name)) return *value;
  const auto& conf = s.hosts[h].facts.software.nccl_conf;
  auto found = conf.find(name);
  return found == conf.end() ? "" : found->second;
}

bool set_for_job(const Situation& s, const std::string& name) {
  return std::any_of(s.job.set.begin(), s.job.set.end(), [&](const auto& pair) { return pair.first == name; });
}

machine::NcclSettings nccl_settings_of(const Situation& s, size_t h) {
  std::map<std::string, std::string> values;
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID"}) values[name] = job_setting(s, h, name);
  const auto& found = s.hosts[h].facts.software.nccl;
  return machine::nccl_settings(values, found.empty() ? 0 : machine::nccl_version(found[0].version));
}

std::optional<machine::SocketChoice> nccl_choice_of(const Situation& s, size_t h) {
  const HostView& view = s.hosts[h];
  if (!view.probed || view.facts.network.interfaces.empty()) return std::nullopt;
  return machine::nccl_choice(view.facts.network.interfaces, nccl_settings_of(s, h));
}

std::optional<machine::SocketChoice> gloo_choice_of(const Situation& s, size_t h) {
  const machine::NetworkFacts& network = s.hosts[h].facts.network;
  if (!s.hosts[h].probed || network.interfaces.empty()) return std::nullopt;
  std::string ifname = job_setting(s, h, "GLOO_SOCKET_IFNAME");
  if (ifname.empty() && (network.names.empty() || network.names[0].addresses.empty())) return std::nullopt;
  return machine::gloo_choice(network.interfaces, ifname, network.names.empty() ? std::vector<std::string>{} : network.names[0].addresses);
}

bool uses_nccl(const Situation& s, size_t h) { return s.job.wants_gpus && !s.hosts[h].facts.gpus.devices.empty(); }

bool uses_gloo(const Situation& s, size_t h) {
  return !uses_nccl(s, h) && !s.job.argv.empty() && s.hosts[h].facts.software.packages.count("torch") > 0;
}

std::string names(const Situation& s, const std::vector<size_t>& hosts) {
  std::string text;
  for (size_t h : hosts) text += (text.empty() ? "" : ", ") + s.hosts[h].name;
  return text;
}

std::string network_stack(const HostView& view) { return view.facts.machine.boot_id + view.facts.machine.net_space; }

bool link_passed(const Situation& s, size_t a, size_t b) {
  return std::any_of(s.mesh.links.begin(), s.mesh.links.end(), [&](const hosts::Link& l) {
    auto from = static_cast<size_t>(l.from), to = static_cast<size_t>(l.to);
    return l.outcome == wire::LinkOutcome::kOk && ((from == a && to == b) || (from == b && to == a));
  });
}

bool link_tried(const Situation& s, size_t a, size_t b) {
  return std::any_of(s.mesh.links.begin(), s.mesh.links.end(), [&](const hosts::Link& l) {
    auto from = static_cast<size_t>(l.from), to = static_cast<size_t>(l.to);
    return (from == a && to == b) || (from == b && to == a);
  });
}

std::vector<Odd> odd_ones(const Situation& s, const std::function<std::optional<std::string>(const HostView&)>& key) {
  std::vector<Camp> all = camps(s, key);
  std::vector<Odd> odd;
  if (all.size() < 2) return odd;
  if (all.size() == 2 && all[0].hosts.size() == all[1].hosts.size() && all[0].hosts.size() == 1)
    odd.push_back({all[0].value, all[1].value, all[0].hosts, all[1].hosts});
  for (size_t i = 1; i < all.size(); ++i) odd.push_back({all[i].value, all[0].value, all[i].hosts, all[0].hosts});
  return odd;
}

}  // namespace phalanx::doctor
