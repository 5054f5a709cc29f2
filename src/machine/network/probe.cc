// The network as one machine sees it: interfaces, routes to its peers, TCP settings, firewall hints.
#include <unistd.h>

#include "base/text.h"
#include "machine/network/links.h"
#include "machine/network/text.h"
#include "machine/probe.h"
#include "machine/tool_output.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr std::chrono::milliseconds kToolDeadline{600};

std::string text_of(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 1 << 20);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

int64_t number_of(const std::string& path, int64_t unknown) {
  base::Result<int64_t> value = base::parse_int(text_of(path), 0, INT64_MAX);
  return value.ok() ? *value : unknown;
}

void read_settings(const std::string& root, NetworkFacts& facts) {
  std::string net = root + "/proc/sys/net/";
  std::string range = text_of(net + "ipv4/ip_local_port_range");
  std::vector<std::string_view> ports = base::split_words(range);
  if (ports.size() == 2) {
    base::Result<int64_t> low = base::parse_int(ports[0], 0, 65535), high = base::parse_int(ports[1], 0, 65535);
    if (low.ok() && high.ok()) facts.port_range_low = *low, facts.port_range_high = *high;
  }
  facts.reserved_ports = text_of(net + "ipv4/ip_local_reserved_ports").substr(0, 1024);
  facts.somaxconn = number_of(net + "core/somaxconn", 0);
  facts.tcp_syn_retries = number_of(net + "ipv4/tcp_syn_retries", 0);
  facts.rp_filter = number_of(net + "ipv4/conf/all/rp_filter", -1);
  facts.ipv6_disabled = number_of(net + "ipv6/conf/all/disable_ipv6", 0) == 1;
  std::string up = text_of(root + "/proc/uptime");
  base::Result<int64_t> seconds = base::parse_int(std::string_view(up).substr(0, up.find('.')), 0, INT64_MAX);
  if (seconds.ok()) facts.uptime_s = *seconds;
}

// Only root may read the packet filter; others see what the services leave behind. Of a tree: what was recorded in /nft-ruleset.
void read_firewall(const std::string& root, bool firewall, NetworkFacts& facts) {
  for (const char* group : {"/sys/fs/cgroup/system.slice/", "/sys/fs/cgroup/systemd/system.slice/"})
    if (facts.firewalls.empty() && os::exists(root + group + "firewalld.service")) facts.firewalls.push_back("firewalld active");
  std::string ufw = text_of(root + "/etc/ufw/ufw.conf");
  for (std::string_view line : base::split_lines(ufw))
    if (base::to_lower(base::trim(line)) == "enabled=yes") facts.firewalls.push_back("ufw enabled");
  std::optional<std::string> rules;
  if (!root.empty()) {
    base::Result<std::string> recorded = os::read_file(root + "/nft-ruleset", 1 << 20);
    if (recorded.ok()) rules = *recorded;
  } else if (firewall && ::geteuid() == 0) {
    rules = tool_output("nft", {"list", "ruleset"}, kToolDeadline);
  }
  if (rules) facts.chains = parse_nft(*rules);
  if (!rules && firewall && root.empty() && ::geteuid() == 0) {
    std::optional<std::string> listed = tool_output("iptables", {"-S", "INPUT"}, kToolDeadline);
    if (listed) facts.chains = parse_iptables(*listed);
  }
  for (const FirewallChain& c : facts.chains)
    if (c.rules > 0 || c.policy == "drop")
      facts.firewalls.push_back(c.tool + ": " + c.table + " " + c.chain + ", policy " + c.policy + ", " + std::to_string(c.rules) +
                                (c.rules == 1 ? " rule" : " rules"));
}

std::string own_name(const std::string& root) {
  if (!root.empty()) {
    std::string name = text_of(root + "/proc/sys/kernel/hostname");
    return name.empty() ? text_of(root + "/etc/hostname") : name;
  }
  char name[256] = "";
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

NetworkFacts probe_network(const ProbeRequest& request) {
  NetworkFacts facts;
  facts.interfaces = read_interfaces(request.root);
  std::vector<std::string> peers;
  for (const Peer& peer : request.peers)
    for (const std::string& address : peer.addresses) peers.push_back(address);
  if (request.root.empty()) facts.routes = read_routes(peers);
  read_settings(request.root, facts);
  read_firewall(request.root, request.firewall, facts);
  facts.hosts_file_loopback_name = hosts_file_loopback(text_of(request.root + "/etc/hosts"), own_name(request.root));
  return facts;
}

}  // namespace phalanx::machine
