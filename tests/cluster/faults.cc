#include "faults.h"

namespace testbed {
namespace {

base::Status kill_on_h2(const Cluster& cluster, const std::string& name, int signal) {
  if (cluster.kill_processes("h2", name, signal) > 0) return base::ok();
  return base::fail(base::ErrorKind::kInternal, "no " + name + " on h2");
}

}  // namespace

std::vector<InjectedFault> end_faults() {
  constexpr milliseconds kSilence{6500};  // a host is lost after 5 s of silence
  return {
      {"exception", "RUN-EXCEPTION", 1, "ValueError: bad batch"},
      {"exit-code", "RUN-EXIT-CODE", 1},
      {"sys-exit-message", "RUN-EXIT-CODE", 1, "no data left"},
      {"segfault", "RUN-SEGFAULT", 1},
      {"abort", "RUN-ABORTED", 1},
      {"bus-error", "RUN-BUS-ERROR", 1},
      {"killed", "RUN-KILLED", 1},
      {"terminated", "RUN-TERMINATED", 1},
      {"hung-up", "RUN-TERMINATED", 1},
      {"out-of-memory", "RUN-OOM-CGROUP", 1, "Killed process", {}, milliseconds(8000)},
      {"left-early", "RUN-LEFT-EARLY", 1, "Connection closed by peer", {}, milliseconds(4000)},
      {"swallowed", "RUN-LEFT-EARLY", 1, "", {}, milliseconds(4000)},
      {"loader-killed", "RUN-EXCEPTION", 1, "DataLoader worker", {}, milliseconds(4000)},
      {"no-shared-memory", "FS-SHM-SMALL", 1, "", {}, milliseconds(6000)},
      {"disk-full", "FS-DISK-FULL", 1, "enforce fail at inline_container.cc"},
      {"read-only", "RUN-EXCEPTION", 1},
      {"missing-checkpoint", "FS-FILE-MISSING", 1, "FileNotFoundError"},
      {"missing-module", "ENV-IMPORT", 1, "ModuleNotFoundError: No module named 'flash_attn'"},
      {"before-init", "ENV-IMPORT", 1, "ModuleNotFoundError: No module named 'flash_attn'"},
      {"wrong-shape", "RUN-EXCEPTION", 1, "mat1 and mat2 shapes cannot be multiplied"},
      {"assertion", "RUN-EXCEPTION", 1, "AssertionError: loss is nan"},
      {"recursion", "RUN-EXCEPTION", 1, "RecursionError"},
      {"too-many-files", "LIM-NOFILE", 1, "Too many open files", {}, milliseconds(8000)},
      {"killed-from-outside", "RUN-KILLED", 1, "", [](Cluster& c) { return kill_on_h2(c, "trainer.py", SIGKILL); }},
      {"agent-killed", "HOST-AGENT-KILLED", -1, "", [](Cluster& c) { return kill_on_h2(c, "phalanx-agent", SIGKILL); }},
      {"guard-killed", "HOST-LOST", -1, "", [](Cluster& c) { return kill_on_h2(c, "phalanx-guard", SIGKILL); }},
      {"power-off", "HOST-LOST", -1, "", [](Cluster& c) { return c.power_off("h2"); }, kSilence, true},
      {"every-process-gone", "HOST-LOST", -1, "", [](Cluster& c) { return c.kill_all("h2"); }, kSilence, true},
      {"host-stands-still", "HOST-LOST", -1, "", [](Cluster& c) { return c.freeze("h2"); }, kSilence},
      {"cable-pulled", "HOST-LOST", -1, "", [](Cluster& c) { return c.cut("h2"); }, kSilence},
      {"black-hole", "HOST-LOST", -1, "", [](Cluster& c) { return c.drop("h2", Direction::kBoth); }, kSilence},
      {"deaf-host", "HOST-LOST", -1, "", [](Cluster& c) { return c.drop("h2", Direction::kTo); }, kSilence},
      {"mute-host", "HOST-LOST", -1, "", [](Cluster& c) { return c.drop("h2", Direction::kFrom); }, kSilence},
  };
}

}  // namespace testbed
