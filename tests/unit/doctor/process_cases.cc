#include "cases.h"

namespace doctor::test {

std::vector<Case> process_cases() {
  return {
      hit("PROC-LEFTOVERS", "two ranks of a killed torchrun", docker_host_network,
          [](Situation& s) {
            s.hosts[1].facts.processes.leftovers = {
                {4711, 1, 7200, "/opt/conda/bin/python -u train.py", "root", "RANK=4 WORLD_SIZE=8, its launcher is gone"},
                {4712, 1, 7200, "/opt/conda/bin/python -u train.py", "root", "RANK=5 WORLD_SIZE=8, its launcher is gone"}};
          }),
      miss("PROC-LEFTOVERS", "a port's owner is no rank", docker_host_network,
           [](Situation& s) { s.hosts[1].facts.processes.ports = {{8888, "0.0.0.0", 12, "jupyter lab", "root", 1, 90'000}}; }),
  };
}

}  // namespace doctor::test
