#include "doctor/views/path_view.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::doctor {

void each_path(const Situation& s, const std::function<void(size_t, const machine::PathFact&)>& visit) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed)
      for (const machine::PathFact& fact : s.hosts[h].facts.storage.paths) visit(h, fact);
}

std::vector<PathOnHosts> paths_on_hosts(const Situation& s, std::initializer_list<std::string_view> roles) {
  std::vector<PathOnHosts> all;
  each_path(s, [&](size_t h, const machine::PathFact& fact) {
    if (std::find(roles.begin(), roles.end(), fact.role) == roles.end()) return;
    auto same = std::find_if(all.begin(), all.end(), [&](const PathOnHosts& p) { return p.path == fact.path; });
    if (same == all.end()) same = all.insert(all.end(), {fact.path, fact.role, fact.named_by, {}});
    same->seen.emplace_back(h, &fact);
  });
  return all;
}

bool is_hung(const Situation& s, size_t host, const std::string& path) {
  const std::vector<std::string>& hung = s.hosts[host].facts.storage.hung;
  return std::find(hung.begin(), hung.end(), path) != hung.end();
}

Words host_names(const Situation& s, const std::vector<size_t>& hosts) {
  Words words;
  constexpr size_t kMost = 4;
  for (size_t i = 0; i < hosts.size() && i < kMost; ++i) {
    const std::string& name = s.hosts[hosts[i]].name;
    bool last = i + 1 == hosts.size();
    words.add(last ? tr(" and ") : tr(", "), tr("{}", name));
  }
  if (hosts.size() > kMost) words += tr(" and {} more", hosts.size() - kMost, words::chinese_only(hosts.size()));
  return words;
}

std::string run_with_sync(const Situation& s) {
  if (s.job.argv.empty()) return "";
  std::vector<std::string> hosts;
  for (const HostView& host : s.hosts) hosts.push_back(host.ranks > 1 ? fmt::format("{}:{}", host.name, host.ranks) : host.name);
  return fmt::format("phalanx run -H {} --sync -- {}", base::join(hosts, ","), base::shell_quote(s.job.argv));
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace phalanx::doctor
