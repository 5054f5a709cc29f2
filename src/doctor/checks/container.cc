// What a container hides of its host, by what the launcher's start line saw outside (machine/outside.h). Nothing is known of a container
// that the whole launcher runs in. A small /dev/shm is FS-SHM-SMALL, wherever it is.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"

namespace phalanx::doctor {
namespace {

const machine::Outside& outside(const HostView& host) { return host.facts.machine.outside; }

// Nothing found is not the same as not looked.
bool looked(const HostView& host, std::string_view part) {
  return std::none_of(host.facts.gaps.begin(), host.facts.gaps.end(), [&](const machine::Gap& gap) { return gap.part.starts_with(part); });
}

void network(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::Machine& m = host.facts.machine;
  if (s.single() || m.net_space.empty() || m.outside.net_space.empty() || m.net_space == m.outside.net_space) return;
  std::vector<std::string> addresses;
  for (const machine::Interface& i : host.facts.network.interfaces)
    if (!i.loopback && addresses.size() < 4)
      for (const machine::InterfaceAddressFact& a : i.addresses) addresses.push_back(fmt::format("{} {}", i.name, a.address));
  findings.on(h, addresses.empty() ? tr("the container does not use the network of the host, and has no interface of its own")
                                   : tr("the container does not use the network of the host; it has {}", base::join(addresses, ", ")));
}

void processes(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::Machine& m = host.facts.machine;
  if (m.pid_space.empty() || m.outside.pid_space.empty() || m.pid_space == m.outside.pid_space) return;
  findings.on(h, tr("the container has a process namespace of its own"));
}

void devices(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const int64_t inside = host.facts.gpus.device_nodes, all = outside(host).gpus.value_or(0);
  Words words;
  if (all > inside && (inside == 0 || s.job.wants_gpus) && looked(host, "gpus")) words += tr("{} of the host's {} GPUs", inside, all);
  if (!s.single() && outside(host).infiniband == true && !host.facts.infiniband.uverbs && looked(host, "infiniband")) {
    if (!words.english.empty()) words += tr("; ");
    words += tr("no /dev/infiniband, which the host has");
  }
  if (!words.english.empty()) findings.on(h, tr("the container has {}", words));
}

constexpr Row kContainerRows[] = {
    {"CONT-NETWORK", Severity::kWarning, network},
    {"CONT-PID", Severity::kNote, processes},
    {"CONT-DEVICES", Severity::kWarning, devices},
};

}  // namespace

std::span<const Row> container_rows() { return kContainerRows; }

}  // namespace phalanx::doctor
