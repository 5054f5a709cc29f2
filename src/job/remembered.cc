#include "job/remembered.h"

#include <algorithm>

#include "job/supervisor/supervisor.h"

namespace phalanx::job {
namespace {

// Variables that choices look at. Others may hold what nobody wants to find in a file.
bool decides(const std::string& name) {
  for (const char* prefix : {"NCCL_", "GLOO_", "CUDA_", "UCX_", "OMP_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

machine::Facts stripped(machine::Facts facts) {
  facts.command = {};
  facts.storage = {};
  facts.processes = {};
  facts.machine.user.clear();
  std::erase_if(facts.software.environment, [](const auto& variable) { return !decides(variable.first); });
  return facts;
}

}  // namespace

bool holds(const Remembered& remembered, const State& state) {
  if (remembered.hosts.size() != state.hosts.size()) return false;
  if (state.hosts.size() > 1 && (remembered.addresses.size() != state.hosts.size() || remembered.interfaces.size() != state.hosts.size()))
    return false;
  for (size_t h = 0; h < state.hosts.size(); ++h) {
    const RememberedHost& host = remembered.hosts[h];
    if (host.fingerprint.empty() || host.fingerprint != state.hosts[h].hello.fingerprint) return false;
    if (host.name != state.job.hosts[h].target.name) return false;
  }
  return true;
}

std::optional<Remembered> to_remember(const State& state) {
  const Survey& c = state.survey;
  bool whole = c.examined && c.examination.errors == 0 && c.situation.hosts.size() == state.hosts.size() &&
               std::all_of(c.situation.hosts.begin(), c.situation.hosts.end(),
                           [](const doctor::HostView& host) { return host.probed && host.facts.gaps.empty(); });
  // Hosts with GPUs are always checked first (job/supervisor/checks.cc): nobody would read it.
  bool gpus = std::any_of(state.hosts.begin(), state.hosts.end(), [](const HostState& host) { return host.hello.gpus > 0; });
  if (gpus || !whole || (state.hosts.size() > 1 && c.networks.empty())) return std::nullopt;
  Remembered remembered;
  for (size_t h = 0; h < state.hosts.size(); ++h)
    remembered.hosts.push_back({state.job.hosts[h].target.name, state.hosts[h].hello.fingerprint, stripped(c.situation.hosts[h].facts)});
  if (state.hosts.size() == 1) return remembered;
  const Network& network = c.networks[c.network];
  remembered.addresses = network.addresses;
  remembered.interfaces = network.interfaces;
  remembered.speed_mbps = network.speed_mbps;
  remembered.network = network.name;
  remembered.routed = network.routed;
  remembered.mesh = c.situation.mesh;
  return remembered;
}

}  // namespace phalanx::job
