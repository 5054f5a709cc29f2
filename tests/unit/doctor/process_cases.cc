#include "cases.h"

namespace phalanx::doctor::test {

std::vector<Case> process_cases() {
  return {
      hit("PROC-LEFTOVERS", "two ranks of a killed torchrun", docker_host_network,
          [](Situation& s) {
            s.hosts[1].facts.processes.leftovers = {
                {4711, 1, 7200, "/opt/conda/bin/python -u train.py", "root", "RANK=4 WORLD_SIZE=8, its launcher has exited"},
                {4712, 1, 7200, "/opt/conda/bin/python -u train.py", "root", "RANK=5 WORLD_SIZE=8, its launcher has exited"}};
          }),
      hit("PROC-AGENT-SILENT", "no answer to the probe", plain_ethernet,
          [](Situation& s) { s.hosts[1].probed = false, s.hosts[1].error = "it did not answer the probe within 2.0 s"; }),
      hit("PROC-AGENT-SILENT", "stopped after the probe", plain_ethernet,
          [](Situation& s) {
            for (hosts::Link& l : s.mesh.links)
              if (l.from == 1 || l.to == 1) l.outcome = wire::LinkOutcome::kSilent;
          }),
      miss("PROC-AGENT-SILENT", "a login that failed is told apart", plain_ethernet,
           [](Situation& s) { s.hosts[1].probed = s.hosts[1].reached = false, s.hosts[1].error = "Permission denied"; }),
      miss("PROC-LEFTOVERS", "a port's owner is no rank", docker_host_network,
           [](Situation& s) { s.hosts[1].facts.processes.ports = {{8888, "0.0.0.0", 12, "jupyter lab", "root", 1, 90'000}}; }),
  };
}

}  // namespace phalanx::doctor::test
