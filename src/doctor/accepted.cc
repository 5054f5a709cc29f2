#include "doctor/accepted.h"

#include <algorithm>

namespace phalanx::doctor {
namespace {

bool names(const Acceptance& acceptance, const Situation& situation, size_t host) {
  return acceptance.hosts.empty() ||
         std::find(acceptance.hosts.begin(), acceptance.hosts.end(), situation.hosts[host].name) != acceptance.hosts.end();
}

// The hosts of the finding that some acceptance names.
std::vector<size_t> accepted_hosts(const Situation& situation, const std::vector<Acceptance>& accepted, const Finding& finding) {
  std::vector<size_t> hosts;
  for (size_t host : finding.hosts)
    if (std::any_of(accepted.begin(), accepted.end(),
                    [&](const Acceptance& one) { return one.code == finding.row->code && names(one, situation, host); }))
      hosts.push_back(host);
  return hosts;
}

bool accepted_everywhere(const std::vector<Acceptance>& accepted, const Finding& finding) {
  return std::any_of(accepted.begin(), accepted.end(),
                     [&](const Acceptance& one) { return one.code == finding.row->code && one.hosts.empty(); });
}

}  // namespace

void accept(const Situation& situation, const std::vector<Acceptance>& accepted, Examination& examination) {
  if (accepted.empty()) return;
  std::vector<Finding> open, closed;
  for (Finding& finding : examination.findings) {
    const std::vector<size_t> hosts = accepted_hosts(situation, accepted, finding);
    const bool whole = finding.hosts.empty() ? accepted_everywhere(accepted, finding) : hosts.size() == finding.hosts.size();
    if (!whole && hosts.empty()) {
      open.push_back(std::move(finding));
      continue;
    }
    Finding part = whole ? std::move(finding) : finding;
    if (!whole) {
      part.hosts = hosts;
      std::erase_if(finding.hosts, [&](size_t host) { return std::find(hosts.begin(), hosts.end(), host) != hosts.end(); });
      open.push_back(std::move(finding));
    }
    part.accepted = true;
    closed.push_back(std::move(part));
  }
  examination.accepted = static_cast<int>(closed.size());
  examination.findings = std::move(open);
  std::move(closed.begin(), closed.end(), std::back_inserter(examination.findings));
  count_again(examination);
}

}  // namespace phalanx::doctor
