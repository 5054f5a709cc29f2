#include "agent/looks/probe_duty.h"

#include <algorithm>

#include "base/json_fields.h"
#include "machine/probe.h"
#include "os/files.h"
#include "os/guarded.h"

namespace phalanx::agent {
namespace {

constexpr os::milliseconds kReserve{300};         // beyond the deadline, for what the child does after it
constexpr os::milliseconds kPrefixLook{300};      // for a look at path_prefix, which may lie on a dead server
constexpr os::milliseconds kBusyMachine{20'000};  // in all, for a child that still moves
constexpr int64_t kLongestDeadlineMs = 60'000;

machine::ProbeRequest probe_request(const wire::Probe& m, const Environment& host) {
  machine::ProbeRequest request;
  request.argv = m.job.argv;
  request.directory = m.job.directory;
  request.deadline = os::milliseconds(std::clamp<int64_t>(m.deadline_ms, 200, kLongestDeadlineMs));
  for (const wire::ProbePeer& peer : m.peers) request.peers.push_back({peer.name, peer.addresses});
  for (uint32_t port : m.ports) request.ports.push_back(static_cast<int>(port));
  request.names = m.names;
  request.paths = m.paths;
  request.firewall = m.firewall;
  bool prefix_exists = false;
  if (!m.job.path_prefix.empty()) {
    auto looked = os::run_guarded({{"prefix", [&m] { return std::string(os::is_folder(m.job.path_prefix) ? "y" : "n"); }}}, kPrefixLook);
    prefix_exists = looked[0].ok() && *looked[0] == "y";
  }
  request.environment = job_environment(host, m.job, prefix_exists);
  return request;
}

}  // namespace

void ProbeDuty::start(const wire::Probe& request, const Environment& host) {
  os::milliseconds patience = os::milliseconds(std::min<int64_t>(request.deadline_ms, kLongestDeadlineMs)) + kReserve;
  auto look = [request, host] { return base::to_text(base::to_json(machine::probe(probe_request(request, host)))); };
  look_.start(look, ForkedLook::Patience{patience, std::max(kBusyMachine, 2 * patience)}, [this](base::Result<std::string> answer) {
    wire::Probed probed;
    if (answer.ok()) probed.json = std::move(answer).value();
    else probed.outcome = {false, std::move(answer).error()};
    done_(std::move(probed));
  });
}

}  // namespace phalanx::agent
