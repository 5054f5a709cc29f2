#include "doctor/views/mesh_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "doctor/views/network_view.h"
#include "machine/network/text.h"

namespace phalanx::doctor {
namespace {

// What the firewall should let in: the network of the job's addresses, else each of the other hosts.
std::string allowed(const Situation& s, size_t host) {
  std::string network = network_of_chosen(s.hosts[host]);
  bool all = !network.empty() && std::all_of(s.hosts.begin(), s.hosts.end(),
                                             [&](const HostView& h) { return h.address.empty() || network_of_chosen(h) == network; });
  if (all) return network;
  std::string list;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (h != host && !s.hosts[h].address.empty()) list += (list.empty() ? "" : ",") + s.hosts[h].address;
  return list;
}

bool closes(const machine::FirewallChain& chain) { return chain.policy == "drop" || chain.drops > 0 || chain.rejects > 0; }

}  // namespace

bool touches(const hosts::Link& link, size_t host) {
  return static_cast<size_t>(link.from) == host || static_cast<size_t>(link.to) == host;
}

std::vector<const hosts::Link*> links_of(const Situation& s) {
  auto valid = [&](int64_t h) { return h >= 0 && static_cast<size_t>(h) < s.hosts.size(); };
  std::vector<const hosts::Link*> links;
  for (const hosts::Link& link : s.mesh.links)
    if (valid(link.from) && valid(link.to)) links.push_back(&link);
  return links;
}

std::vector<Blame> blame(const Situation& s, const std::function<bool(const hosts::Link&)>& failed) {
  std::vector<const hosts::Link*> left;
  for (const hosts::Link* link : links_of(s))
    if (failed(*link)) left.push_back(link);
  std::vector<Blame> all;
  while (!left.empty()) {
    std::map<size_t, std::pair<int, int>> score;  // links that touch it, of them those towards it
    for (const hosts::Link* link : left) {
      ++score[static_cast<size_t>(link->from)].first;
      ++score[static_cast<size_t>(link->to)].first;
      ++score[static_cast<size_t>(link->to)].second;
    }
    auto worst = std::max_element(score.begin(), score.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    Blame b;
    b.hosts = {worst->first};
    for (const auto& entry : score) {
      size_t host = entry.first;  // clang 14 cannot capture a structured binding
      bool only_theirs = std::all_of(left.begin(), left.end(),
                                     [&](const hosts::Link* link) { return touches(*link, host) == touches(*link, worst->first); });
      if (host != worst->first && entry.second == worst->second && only_theirs) b.hosts.push_back(host);
    }
    std::sort(b.hosts.begin(), b.hosts.end());
    for (const hosts::Link* link : left)
      if (touches(*link, worst->first)) b.links.push_back(link);
    std::erase_if(left, [&](const hosts::Link* link) { return touches(*link, worst->first); });
    all.push_back(std::move(b));
  }
  return all;
}

std::string ways(const Situation& s, const Blame& b) {
  struct Way {
    std::vector<size_t> from;
    const hosts::Link* link;
  };
  std::vector<Way> list;
  for (const hosts::Link* link : b.links) {
    auto same = std::find_if(list.begin(), list.end(),
                             [&](const Way& w) { return w.link->to == link->to && w.link->master_port == link->master_port; });
    if (same == list.end()) same = list.insert(list.end(), Way{{}, link});
    same->from.push_back(static_cast<size_t>(link->from));
  }
  std::string text;
  for (const Way& w : list) {
    std::string where = w.link->port > 0 ? fmt::format("{}:{}", w.link->address, w.link->port) : w.link->address;
    text += fmt::format("{}{} → {} ({}{})", text.empty() ? "" : "; ", names(s, w.from), s.hosts[static_cast<size_t>(w.link->to)].name,
                        where, w.link->master_port ? ", MASTER_PORT" : "");
  }
  return text;
}

std::string open_firewall(const Situation& s, size_t h) {
  std::string from = allowed(s, h);
  if (from.empty()) return "";
  const machine::NetworkFacts& network = s.hosts[h].facts.network;
  for (const std::string& hint : network.firewalls) {
    if (hint == "firewalld active")
      return fmt::format("sudo firewall-cmd --permanent --zone=trusted --add-source={} && sudo firewall-cmd --reload", from);
    if (hint == "ufw enabled") return fmt::format("sudo ufw allow from {}", from);
  }
  std::string command;
  for (const machine::FirewallChain& c : network.chains) {
    if (c.tool != "nft" || !closes(c) || c.table.substr(0, 3) == "arp") continue;
    std::string set = from.find(',') == std::string::npos ? from : "{ " + from + " }";
    std::string rule = fmt::format("sudo nft insert rule {} {} ip saddr {} accept", c.table, c.chain, set);
    if (set != from) rule = fmt::format("sudo nft 'insert rule {} {} ip saddr {} accept'", c.table, c.chain, set);
    command += (command.empty() ? "" : " && ") + rule;
  }
  return command.empty() ? fmt::format("sudo iptables -I INPUT -s {} -j ACCEPT", from) : command;
}

void report_links(const Situation& s, Findings& findings, wire::LinkOutcome outcome,
                  const std::function<Words(const std::string& ways, const hosts::Link&)>& words,
                  const std::function<std::string(size_t host, const hosts::Link&)>& fix) {
  for (const Blame& b : blame(s, [&](const hosts::Link& link) { return link.outcome == outcome; }))
    findings.on(b.hosts, words(ways(s, b), *b.links[0]), fix(b.hosts[0], *b.links[0]));
}

std::string seconds(int64_t ns) { return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9); }
std::string rate(int64_t bytes_per_second) { return fmt::format("{} MB/s", bytes_per_second / 1'000'000); }

}  // namespace phalanx::doctor
