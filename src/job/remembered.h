// What the checks of a run found, kept for the next run of the same job on the same hosts. That run starts at once by it and is checked
// while its program starts (job/survey/survey.cc): an error found then stops it, as it would have refused it.
//
// It holds only as long as every host still shows the same fingerprint (wire::Hello): the same boot, network interfaces with their
// addresses, and settings. How old it may be, and for which job it was found, is its keeper's business (cli/records/check_memory.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "hosts/mesh.h"
#include "job/choose/choose.h"
#include "machine/facts.h"

namespace phalanx::job {

struct State;

struct RememberedHost {
  std::string name;  // as in the host list
  std::string fingerprint;
  machine::Facts facts;  // those that choices rest on, without what is told of files, processes and variables
};
PHALANX_FIELDS(RememberedHost, name, fingerprint, facts);

struct Remembered {
  std::vector<RememberedHost> hosts;
  std::vector<std::string> addresses, interfaces;  // of the network that held, per host; empty for one host
  int64_t speed_mbps = 0;
  std::string network;
  bool routed = false;
  hosts::Mesh mesh;
};
PHALANX_FIELDS(Remembered, hosts, addresses, interfaces, speed_mbps, network, routed, mesh);

// Whether it speaks of the hosts that have just said Hello.
bool holds(const Remembered& remembered, const State& state);
// None where the checks were not made to their end, found an error, or could not look at everything.
std::optional<Remembered> to_remember(const State& state);

}  // namespace phalanx::job
