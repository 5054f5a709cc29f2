#include "cases.h"

namespace phalanx::doctor::test {
namespace {

// Host 1 is a container that hides nothing of its host.
machine::Outside& contained(Situation& s) {
  machine::Machine& m = s.hosts[1].facts.machine;
  m.net_space = "net:[4026531840]";
  m.pid_space = "pid:[4026531836]";
  m.outside = {
      .net_space = m.net_space, .pid_space = m.pid_space, .gpus = s.hosts[1].facts.gpus.device_nodes, .infiniband = false, .init = 812};
  return m.outside;
}

}  // namespace

std::vector<Case> container_cases() {
  return {
      hit("CONT-NETWORK", "another network namespace", docker_host_network,
          [](Situation& s) { contained(s).net_space = "net:[4026532001]"; }),
      miss("CONT-NETWORK", "--network host", docker_host_network, [](Situation& s) { contained(s); }),
      miss("CONT-NETWORK", "one host meets nobody", single_machine,
           [](Situation& s) {
             s.hosts[0].facts.machine.net_space = "net:[1]";
             s.hosts[0].facts.machine.outside.net_space = "net:[2]";
           }),
      hit("CONT-PID", "another process namespace", docker_host_network, [](Situation& s) { contained(s).pid_space = "pid:[4026532002]"; }),
      miss("CONT-PID", "--pid host", docker_host_network, [](Situation& s) { contained(s); }),
      hit("CONT-DEVICES", "one GPU too few", docker_host_network,
          [](Situation& s) {
            s.job.wants_gpus = true;
            contained(s).gpus = s.hosts[1].facts.gpus.device_nodes + 1;
          }),
      hit("CONT-DEVICES", "none at all, and ranks by number", docker_host_network,
          [](Situation& s) {
            s.job.wants_gpus = false;
            contained(s).gpus = 8;
            s.hosts[1].facts.gpus.device_nodes = 0;
          }),
      hit("CONT-DEVICES", "InfiniBand stayed outside", plain_ethernet, [](Situation& s) { contained(s).infiniband = true; }),
      miss("CONT-DEVICES", "InfiniBand could not be looked at", plain_ethernet,
           [](Situation& s) {
             contained(s).infiniband = true;
             s.hosts[1].facts.gaps.push_back({"infiniband", "no answer for 1.2 s"});
           }),
      miss("CONT-DEVICES", "all that the host has", docker_host_network, [](Situation& s) { contained(s); }),
  };
}

}  // namespace phalanx::doctor::test
