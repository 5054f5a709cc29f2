#include "doctor/views/infiniband_view.h"

#include <strings.h>

#include <algorithm>
#include <map>

#include "doctor/settings.h"
#include "doctor/views/network_view.h"

namespace phalanx::doctor {

std::string IbPlace::name() const { return device->ports.size() > 1 ? device->name + ":" + std::to_string(port->port) : device->name; }

std::vector<IbPlace> ib_ports(const Situation& s) {
  std::vector<IbPlace> all;
  for (size_t h : probed(s))
    for (const machine::IbDevice& d : s.hosts[h].facts.infiniband.devices)
      for (const machine::IbPort& p : d.ports) all.push_back({h, &d, &p});
  return all;
}

bool ib_switched_off(const Situation& s, size_t h) {
  return std::atoll(job_setting(s, h, "NCCL_IB_DISABLE").c_str()) != 0 ||
         ::strcasecmp(job_setting(s, h, "NCCL_NET").c_str(), "socket") == 0;
}

std::vector<IbPlace> nccl_ib_ports(const Situation& s, size_t h) {
  std::vector<IbPlace> all;
  std::string filter = job_setting(s, h, "NCCL_IB_HCA");
  for (const IbPlace& place : ib_ports(s))
    if (place.host == h && place.port->state == "ACTIVE" &&
        (filter.empty() || machine::nccl_list_takes(filter, place.device->name, static_cast<int>(place.port->port))))
      all.push_back(place);
  return all;
}

std::vector<OddPort> odd_ports(const Situation& s, const std::function<std::string(const IbPlace&)>& value) {
  std::map<std::string, std::map<std::string, std::vector<IbPlace>>> by_name;  // name → value → places
  for (const IbPlace& place : ib_ports(s))
    if (std::string v = value(place); !v.empty()) by_name[place.name()][v].push_back(place);
  std::vector<OddPort> odd;
  for (const auto& [name, values] : by_name) {
    if (values.size() < 2) continue;
    auto usual =
        std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    bool tie = values.size() == 2 && values.begin()->second.size() == values.rbegin()->second.size();
    for (const auto& [v, places] : values) {
      if (v == usual->first && !tie) continue;
      const auto& [other, others] = tie ? (v == values.begin()->first ? *values.rbegin() : *values.begin()) : *usual;
      std::vector<size_t> hosts;
      for (const IbPlace& place : others) hosts.push_back(place.host);
      for (const IbPlace& place : places) odd.push_back({place, v, other, hosts});
    }
  }
  return odd;
}

}  // namespace phalanx::doctor
