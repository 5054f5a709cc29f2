#include "job/choose/choose.h"

#include <fmt/format.h>

#include "job/choose/parts.h"

namespace phalanx::job {

using doctor::Situation;
using doctor::Words;
using words::tr;

std::optional<std::string> users_word(const Situation& situation, size_t host, const std::string& name) {
  if (std::optional<std::string> value = situation.variable(host, name)) return value;
  const auto& file = situation.hosts[host].facts.software.nccl_conf;
  auto line = file.find(name);
  return line == file.end() ? std::nullopt : std::optional(line->second);
}

int ranks_on(const Situation& situation, const GpuRequest& wish, const Choices& choices, size_t host) {
  if (choices.hosts[host].has_gpus) return static_cast<int>(choices.hosts[host].gpus.size());
  if (host < wish.ranks.size() && wish.ranks[host] > 0) return wish.ranks[host];
  return situation.hosts[host].ranks;
}

Words host_names(const Situation& situation, const std::vector<size_t>& hosts) {
  auto name = [&](size_t at) { return situation.hosts[hosts[at]].name; };
  switch (hosts.size()) {
    case 0: return {};
    case 1: return tr("{}", name(0));
    case 2: return tr("{} and {}", name(0), name(1));
    case 3: return tr("{}, {} and {}", name(0), name(1), name(2));
    default: return tr("{}, {} and {} more", name(0), name(1), hosts.size() - 2, words::chinese_only(hosts.size()));
  }
}

Choices choose(const Situation& situation, const GpuRequest& wish, const Network& network) {
  Choices choices;
  choices.hosts.resize(situation.hosts.size());
  choose_gpus(situation, wish, choices);
  choose_address(situation, wish, network, choices);
  choose_interfaces(situation, wish, network, choices);
  choose_infiniband(situation, choices);
  choose_p2p(situation, choices);
  choose_threads(situation, wish, choices);
  choose_cpus(situation, wish, choices);
  return choices;
}

}  // namespace phalanx::job
