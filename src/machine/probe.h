// The probe of one machine: every part of the facts, within a deadline, whatever hangs.
//
// Parts that may hang (NVML, stat on a dead server, name look-ups) run in children of their own that are killed at the deadline
// and become Gaps; the other parts still answer. The caller runs probe() itself in a child too (agent/looks/probe_duty.h): it forks.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/facts.h"

namespace phalanx::machine {

struct Peer {
  std::string name;                    // as in the host list
  std::vector<std::string> addresses;  // that it said it has
};

struct ProbeRequest {
  std::string root;               // "" for this machine, or a folder that stands in for one (its /proc, /sys, /dev, /etc and files)
  std::vector<std::string> argv;  // the command; may be empty
  std::string directory;          // its working directory
  std::map<std::string, std::string> environment;  // that a rank would get (agent/ranks/environment.h)
  std::vector<Peer> peers;                         // the other hosts
  std::vector<int> ports;                          // whose owners are wanted: MASTER_PORT …
  std::vector<std::string> names;                  // to be resolved besides own name and peers' names: MASTER_ADDR
  std::vector<std::string> paths;                  // to be looked at besides those of the command
  bool firewall = true;                            // ask the packet filter for its rules (nft, iptables)
  std::chrono::milliseconds deadline{1500};
};

Facts probe(const ProbeRequest& request);

// What an error of os::run_guarded() says of a part.
Gap gap_of(std::string part, const base::Error& error);

// --- the parts, one file each. All reads are rooted at request.root. ------------------------------------------------------
Machine probe_machine(const ProbeRequest& request);
GpuFacts probe_gpus(const ProbeRequest& request);
NetworkFacts probe_network(const ProbeRequest& request);  // without names
std::vector<Resolved> resolve_names(const ProbeRequest& request);
InfinibandFacts probe_infiniband(const ProbeRequest& request);
CommandFacts read_command(const ProbeRequest& request);
SoftwareFacts probe_software(const ProbeRequest& request);
// paths: of the command, from read_command.
StorageFacts probe_storage(const ProbeRequest& request, const std::vector<NamedPath>& paths, std::vector<Gap>& gaps);
LimitsFacts probe_limits(const ProbeRequest& request);
ProcessFacts probe_processes(const ProbeRequest& request);
ClockFacts probe_clock(const ProbeRequest& request);

}  // namespace phalanx::machine
