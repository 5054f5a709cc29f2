#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "frontdoor/translation.h"

namespace phalanx::frontdoor {
namespace {

// "gpu01:8,gpu02:8", "[fd00::1]:8"
std::string host_argument(const std::vector<Host>& hosts) {
  std::string out;
  for (const Host& host : hosts) {
    const bool bare_ipv6 = std::count(host.name.begin(), host.name.end(), ':') > 1 && !host.name.starts_with("[");
    out += fmt::format("{}{}{}", out.empty() ? "" : ",", bare_ipv6 ? "[" + host.name + "]" : host.name,
                       host.slots ? fmt::format(":{}", host.slots) : "");
  }
  return out;
}

// "gpu01:0,2@gpu02"; empty: all slots of all hosts.
std::string filter(const std::vector<Host>& hosts) {
  if (std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.selected.empty(); })) return "";
  std::string out;
  for (const Host& host : hosts) {
    out += (out.empty() ? "" : "@") + host.name;
    for (size_t i = 0; i < host.selected.size(); ++i) out += fmt::format("{}{}", i == 0 ? ":" : ",", host.selected[i]);
  }
  return out;
}

}  // namespace

std::vector<std::string> run_options_of(const Translation& t) {
  std::vector<std::string> out;
  auto add = [&](std::string_view option, std::string value) {
    out.emplace_back(option);
    out.push_back(std::move(value));
  };
  if (!t.hostfile.empty()) add("--hostfile", t.hostfile);
  if (!t.hosts.empty()) add("-H", host_argument(t.hosts));
  if (std::string include = filter(t.hosts); !include.empty()) add("--include", std::move(include));
  if (t.nodes) add("--nnodes", t.least_nodes ? fmt::format("{}:{}", *t.least_nodes, *t.nodes) : std::to_string(*t.nodes));
  if (t.node_rank) add("--node-rank", std::to_string(*t.node_rank));
  if (!t.ranks.empty()) add("--nproc-per-node", t.ranks);
  if (!t.master_address.empty()) add("--master-addr", t.master_address);
  if (t.master_port) add("--master-port", std::to_string(*t.master_port));
  if (t.restarts) add("--max-restarts", std::to_string(*t.restarts));
  if (t.local_rank_macro) out.emplace_back("--local-rank-macro");
  if (t.no_store) out.emplace_back("--no-store");
  for (const std::string& file : t.environment_files) add("--env-file", file);
  for (const auto& [name, value] : t.environment) add("--env", name + "=" + value);
  if (!t.log_folder.empty()) add("--log-dir", t.log_folder);
  if (t.split_logs) out.emplace_back("--split-logs");
  if (!t.shown.empty()) add("--show", t.shown);
  for (const std::string& option : t.ssh_options) add("--ssh-option", option);
  if (t.quiet) out.emplace_back("--quiet");
  return out;
}

}  // namespace phalanx::frontdoor
