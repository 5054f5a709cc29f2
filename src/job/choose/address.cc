// The address of each host, and why that network.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "job/choose/parts.h"

namespace phalanx::job {
namespace {

using doctor::Situation;
using doctor::Words;

std::string speed(int64_t mbps) {
  if (mbps <= 0) return "";
  return mbps % 1000 == 0 ? fmt::format(", {} Gbit/s", mbps / 1000) : fmt::format(", {} Mbit/s", mbps);
}

// Against the other networks all hosts share.
Words compared(const std::vector<Network>& shared, const Network& network) {
  size_t at = 0;
  while (at < shared.size() && shared[at].name != network.name) ++at;
  if (at > 0 && at < shared.size())
    return {fmt::format("the first of {} shared networks that passed the connection test", shared.size()),
            fmt::format("{} 个共有网络中第一个通过连接测试的", shared.size())};
  if (shared.size() < 2) return {"the only network all hosts share", "所有主机唯一共有的网络"};
  std::vector<std::string> others;
  for (const Network& n : shared)
    if (n.name != network.name && others.size() < 3) others.push_back(n.name + speed(n.speed_mbps));
  bool faster = network.speed_mbps > 0 && std::all_of(shared.begin(), shared.end(), [&](const Network& n) {
                  return n.name == network.name || n.speed_mbps < network.speed_mbps;
                });
  std::string list = base::join(others, "; "), list_zh = base::join(others, "；");
  return faster
             ? Words{"the fastest network all hosts share (also: " + list + ")", "所有主机共有的网络中最快的（另有：" + list_zh + "）"}
             : Words{"first of the networks all hosts share (also: " + list + ")", "所有主机共有的网络中的首选（另有：" + list_zh + "）"};
}

const machine::Interface* interface_of(const doctor::HostView& host, const std::string& name) {
  for (const machine::Interface& i : host.facts.network.interfaces)
    if (i.name == name) return &i;
  return nullptr;
}

// InfiniBand beside the network that was chosen, or as that network: the one choice that is often asked about.
Words about_ipoib(const Situation& situation, const std::vector<Network>& shared, const Network& network, size_t h) {
  auto is_ipoib = [&](const Network& n) {
    const machine::Interface* i = interface_of(situation.hosts[h], n.interfaces[h]);
    return i && i->kind == "infiniband";
  };
  if (is_ipoib(network)) {
    bool ethernet = std::any_of(shared.begin(), shared.end(), [&](const Network& n) { return !is_ipoib(n); });
    if (!ethernet) return {};
    return {"IPoIB, because Ethernet here is at most 1 Gbit/s", "因以太网不超过 1 Gbit/s，故用 IPoIB"};
  }
  if (std::none_of(shared.begin(), shared.end(), is_ipoib)) return {};
  return {"IPoIB is not used for the rendezvous: it depends on the subnet manager, and NCCL uses InfiniBand through verbs anyway",
          "会合不使用 IPoIB：IPoIB 依赖子网管理器，而 NCCL 本来就通过 verbs 使用 InfiniBand"};
}

}  // namespace

void choose_address(const Situation& situation, const GpuRequest& wish, const Network& network, Choices& choices) {
  bool whole = network.addresses.size() == situation.hosts.size() && network.interfaces.size() == situation.hosts.size();
  std::vector<Network> shared = shared_networks(situation, wish.interface);
  std::map<std::string, int> owned = owners(situation);
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    HostChoice& choice = choices.hosts[h];
    if (!whole) {
      choice.address_why = {"no network common to all hosts was found", "未发现所有主机共有的网络"};
      continue;
    }
    choice.address = network.addresses[h];
    choice.interface = network.interfaces[h];
    Words& why = choice.address_why;
    const machine::Interface* interface = interface_of(situation.hosts[h], choice.interface);
    std::string where = network.name + (interface ? speed(interface->speed_mbps) : "");
    auto add = [&](const Words& more) {
      if (more.english.empty()) return;
      why.english += (why.english.empty() ? "" : "; ") + more.english;
      why.chinese += (why.chinese.empty() ? "" : "；") + more.chinese;
    };
    if (!wish.interface.empty()) {
      add({"from --iface (" + where + ")", "按 --iface 指定（" + where + "）"});
      continue;
    }
    if (situation.single()) {
      add({"only one host: rendezvous on loopback", "只有一台主机：各 rank 在环回地址上会合"});
      continue;
    }
    if (network.routed) {
      add({"no network is common to all hosts: the source address that this host uses to reach the others",
           "各主机没有共同网段：取本机到达其他主机所用的源地址"});
    } else {
      add({where, where});
      add(compared(shared, network));
      add(about_ipoib(situation, shared, network, h));
    }
    std::vector<std::string> nowhere = decoys(situation, h, owned);
    if (!nowhere.empty())
      add({base::join(nowhere, ", ") + (nowhere.size() == 1 ? " leads" : " lead") + " to no other host",
           base::join(nowhere, "、") + " 不通往其他主机"});
  }
}

}  // namespace phalanx::job
