#include "job/choose.h"

namespace job {

Choices choose(const doctor::Situation& situation, const GpuWish&, const Network& network) {
  Choices choices;
  choices.hosts.resize(situation.hosts.size());
  for (size_t h = 0; h < network.addresses.size() && h < choices.hosts.size(); ++h) {
    choices.hosts[h].address = network.addresses[h];
    choices.hosts[h].interface = network.interfaces[h];
    choices.hosts[h].settings = {{"GLOO_SOCKET_IFNAME", network.interfaces[h], {}},
                                 {"NCCL_SOCKET_IFNAME", "=" + network.interfaces[h], {}}};
  }
  return choices;
}

}  // namespace job
