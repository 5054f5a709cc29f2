#include "doctor/verbs.h"

#include <fmt/format.h>

namespace phalanx::doctor {

std::vector<LivePort> live_ports(const machine::InfinibandFacts& facts) {
  std::vector<LivePort> live;
  for (const machine::IbDevice& device : facts.devices)
    for (const machine::IbPort& port : device.ports)
      if (port.state == "ACTIVE") live.push_back({&device, &port});
  return live;
}

bool verbs_usable(const machine::InfinibandFacts& facts) { return facts.uverbs && !facts.libibverbs.empty() && !live_ports(facts).empty(); }

Words why_no_verbs(const machine::InfinibandFacts& facts) {
  if (facts.devices.empty()) return tr("no InfiniBand or RoCE device");
  if (live_ports(facts).empty()) {
    for (const machine::IbDevice& device : facts.devices)
      for (const machine::IbPort& port : device.ports) {
        bool init = port.state == "INIT";
        return tr("{} port {} is {}{}", device.name, port.port, port.state.empty() ? tr("in an unknown state") : tr("{}", port.state),
                  init                      ? tr(": no subnet manager has set it up")
                  : port.phys_state.empty() ? Words{}
                                            : tr(" ({})", port.phys_state));
      }
    return tr("no port");
  }
  if (!facts.uverbs) return tr("no /dev/infiniband/uverbs*");
  return tr("libibverbs.so.1 is not found");
}

double live_rate(const machine::InfinibandFacts& facts, bool roce) {
  double sum = 0;
  for (const LivePort& live : live_ports(facts))
    if (live.roce() == roce) sum += live.port->rate_gbps;
  return sum;
}

}  // namespace phalanx::doctor
