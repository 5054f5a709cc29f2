// Speed and health of the links: what was negotiated, what passed in the mesh test, what the counters say.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/mesh_view.h"
#include "doctor/network_rows.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

// A burst is short and the machines may be busy: a host is called slow only where the best of its links in one direction is far below
// the median of the links it has no part in. With two hosts there is no third to compare with, so the ways there and back are compared.
constexpr int64_t kSlowRatio = 3, kSlowRatioOfTwo = 8;
constexpr int64_t kSlowMargin = 30'000'000, kSlowOfTwo = 125'000'000, kFastOfTwo = 250'000'000;  // bytes per second
// Above 10 Gbit/s the rate of one short stream is the processors', not the link's.
constexpr int64_t kProcessorBound = 1'250'000'000;
constexpr int64_t kMostChanges = 12, kMostChangesUnknownTime = 100, kMostChangesPerDay = 5;
constexpr int64_t kFewLost = 10;    // packets in all: a host that gets little of a processor is late with some answers
constexpr int64_t kMostLost = 100;  // of 10,000: a full queue costs a burst a few, a bad cable many

int64_t median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<const cluster::Link*> measured(const Situation& s) {
  std::vector<const cluster::Link*> links = links_of(s);
  std::erase_if(links, [](const cluster::Link* l) { return l->outcome != "ok" || l->bytes_per_second <= 0; });
  return links;
}

void report_slow(Findings& findings, size_t host, bool out, int64_t best, int64_t usual) {
  findings.on(host, {fmt::format("{} {} at most, against {} between the others", out ? "sends" : "receives", rate(best), rate(usual)),
                     fmt::format("{}最多 {}，其他主机之间为 {}", out ? "发送" : "接收", rate(best), rate(usual))});
}

void slow_of_two(const std::vector<const cluster::Link*>& links, Findings& findings) {
  if (links.size() != 2) return;
  const cluster::Link* slow = links[0]->bytes_per_second < links[1]->bytes_per_second ? links[0] : links[1];
  const cluster::Link* fast = slow == links[0] ? links[1] : links[0];
  if (slow->bytes_per_second * kSlowRatioOfTwo > fast->bytes_per_second || slow->bytes_per_second > kSlowOfTwo ||
      fast->bytes_per_second < kFastOfTwo)
    return;
  auto from = static_cast<size_t>(slow->from), to = static_cast<size_t>(slow->to);
  findings.on({from, to}, {fmt::format("{} one way, {} the other", rate(slow->bytes_per_second), rate(fast->bytes_per_second)),
                           fmt::format("一个方向 {}，另一个方向 {}", rate(slow->bytes_per_second), rate(fast->bytes_per_second))});
}

void slow_link(const Situation& s, Findings& findings) {
  std::vector<const cluster::Link*> links = measured(s);
  if (s.hosts.size() == 2) return slow_of_two(links, findings);
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<int64_t> others;
    for (const cluster::Link* l : links)
      if (static_cast<size_t>(l->from) != h && static_cast<size_t>(l->to) != h) others.push_back(l->bytes_per_second);
    int64_t usual = median(others);
    if (others.size() < 2) continue;
    for (bool out : {true, false}) {
      int64_t best = 0, count = 0;
      for (const cluster::Link* l : links)
        if (static_cast<size_t>(out ? l->from : l->to) == h) best = std::max(best, l->bytes_per_second), ++count;
      if (count >= 2 && best < kProcessorBound && best * kSlowRatio < usual && usual - best > kSlowMargin)
        report_slow(findings, h, out, best, usual);
    }
  }
}

void loss(const Situation& s, Findings& findings) {
  std::vector<const cluster::Link*> links = links_of(s);
  std::erase_if(links, [](const cluster::Link* l) { return l->outcome != "ok"; });
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<int64_t> mine, others;
    int64_t lost = 0;
    for (const cluster::Link* l : links) {
      if (l->segments > 0) (touches(*l, h) ? mine : others).push_back(l->retransmits * 10'000 / l->segments);
      if (touches(*l, h)) lost += l->retransmits;
    }
    if (lost < kFewLost || mine.size() < 4 || others.size() < 2) continue;
    int64_t here = median(mine), there = median(others);
    if (here < kMostLost || here < 10 * there) continue;
    findings.on(h, {fmt::format("{} of 10,000 packets are sent again, against {} between the others", here, there),
                    fmt::format("每 10000 个包重传 {} 个，其他主机之间为 {} 个", here, there)});
  }
}

std::optional<std::string> speed_of(const HostView& view) {
  const host::Interface* i = chosen_interface(view);
  if (!i || i->speed_mbps <= 0 || (i->kind != "physical" && i->kind != "bond" && i->kind != "infiniband")) return std::nullopt;
  return std::to_string(i->speed_mbps);
}

void speed_differs(const Situation& s, Findings& findings) {
  for (const Odd& odd : odd_ones(s, speed_of)) {
    int64_t mine = std::atoll(odd.value.c_str()), usual = std::atoll(odd.usual.c_str());
    if (mine >= usual) continue;
    for (size_t h : odd.hosts) {
      const std::string& name = chosen_interface(s.hosts[h])->name;
      findings.on(h,
                  {fmt::format("{} runs at {} Mbit/s; {} at {}", name, mine, names(s, odd.others), usual),
                   fmt::format("{} 协商速率为 {} Mbit/s，而 {} 为 {}", name, mine, names(s, odd.others), usual)},
                  fmt::format("sudo ethtool {}", name));
    }
  }
}

bool has_active_ib(const HostView& view) {
  for (const host::IbDevice& d : view.facts.infiniband.devices)
    for (const host::IbPort& p : d.ports)
      if (p.state == "ACTIVE") return true;
  return false;
}

void slow_card(const Situation& s, Findings& findings) {
  if (s.single()) return;
  std::vector<size_t> hosts;
  for (size_t h : probed(s)) {
    std::optional<std::string> speed = speed_of(s.hosts[h]);
    if (speed && std::atoll(speed->c_str()) <= 1000 && uses_nccl(s, h) && !has_active_ib(s.hosts[h])) hosts.push_back(h);
  }
  for (size_t h : hosts) {
    const host::Interface* i = chosen_interface(s.hosts[h]);
    std::string faster;
    for (const host::Interface& other : s.hosts[h].facts.network.interfaces)
      if (other.running && other.speed_mbps > i->speed_mbps && other.kind == "physical")
        faster += fmt::format("{}{} {}", faster.empty() ? "" : ", ", other.name, other.speed_mbps);
    findings.on(
        h,
        {fmt::format("{} at {} Mbit/s carries all gradients{}", i->name, i->speed_mbps, faster.empty() ? "" : "; faster here: " + faster),
         fmt::format("所有梯度都要经过 {}（{} Mbit/s）{}", i->name, i->speed_mbps, faster.empty() ? "" : "；本机有更快的网卡：" + faster)});
  }
}

void receive_errors(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const host::Interface* i = chosen_interface(s.hosts[h]);
    if (!i || i->rx_errors < 1000 || i->rx_packets <= 0 || i->rx_errors * 10'000 < i->rx_packets) continue;
    findings.on(h,
                {fmt::format("{}: {} of {} packets came with errors", i->name, i->rx_errors, i->rx_packets),
                 fmt::format("{}：{} 个包中有 {} 个接收出错", i->name, i->rx_packets, i->rx_errors)},
                fmt::format("sudo ethtool -S {}", i->name));
  }
}

void mtu_differs(const Situation& s, Findings& findings) {
  auto mtu = [](const HostView& view) -> std::optional<std::string> {
    const host::Interface* i = chosen_interface(view);
    if (!i || i->loopback || i->mtu <= 0) return std::nullopt;
    return std::to_string(i->mtu);
  };
  for (const Odd& odd : odd_ones(s, mtu))
    for (size_t h : odd.hosts) {
      const std::string& name = chosen_interface(s.hosts[h])->name;
      findings.on(h,
                  {fmt::format("{} has MTU {}; {} have {}", name, odd.value, names(s, odd.others), odd.usual),
                   fmt::format("{} 的 MTU 为 {}，而 {} 为 {}", name, odd.value, names(s, odd.others), odd.usual)},
                  fmt::format("sudo ip link set dev {} mtu {}", name, odd.usual));
    }
}

void flaps(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const host::NetworkFacts& n = s.hosts[h].facts.network;
    const host::Interface* chosen = chosen_interface(s.hosts[h]);
    for (const host::Interface& i : n.interfaces) {
      bool wanted = &i == chosen || (chosen && i.master == chosen->name) || (i.kind == "infiniband" && !i.addresses.empty());
      if (!wanted || i.carrier_changes < kMostChanges) continue;
      bool often =
          n.uptime_s > 0 ? i.carrier_changes * 86'400 >= kMostChangesPerDay * n.uptime_s : i.carrier_changes >= kMostChangesUnknownTime;
      if (!often) continue;
      std::string since = n.uptime_s > 0 ? fmt::format(" in {:.1f} days", static_cast<double>(n.uptime_s) / 86'400) : "";
      findings.on(h,
                  {fmt::format("{} lost or found its carrier {} times{}", i.name, i.carrier_changes, since),
                   fmt::format("{} 的链路已断开或恢复 {} 次", i.name, i.carrier_changes)},
                  fmt::format("sudo dmesg | grep -i {} | tail", i.name));
    }
  }
}

void bond_degraded(const Situation& s, Findings& findings) {
  for (size_t h : probed(s))
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces) {
      std::string down;
      for (const host::BondSlave& slave : i.slaves)
        if (!slave.up) down += (down.empty() ? "" : ", ") + slave.name;
      if (i.kind != "bond" || down.empty() || i.addresses.empty()) continue;
      findings.on(h,
                  {fmt::format("{}: {} of its {} links is down", i.name, down, i.slaves.size()),
                   fmt::format("{}：{} 条成员链路中 {} 已断开", i.name, i.slaves.size(), down)},
                  "cat /proc/net/bonding/" + i.name);
    }
}

void bond_unequal(const Situation& s, Findings& findings) {
  for (size_t h : probed(s))
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces) {
      int64_t least = 0, most = 0;
      for (const host::BondSlave& slave : i.slaves) {
        if (!slave.up || slave.speed_mbps <= 0) continue;
        least = least == 0 ? slave.speed_mbps : std::min(least, slave.speed_mbps);
        most = std::max(most, slave.speed_mbps);
      }
      if (least == most) continue;
      findings.on(h, {fmt::format("{}: its links run at {} and {} Mbit/s", i.name, least, most),
                      fmt::format("{}：成员链路速率分别为 {} 和 {} Mbit/s", i.name, least, most)});
    }
}

constexpr Row kNetworkLinkRows[] = {
    {"NET-SLOW-LINK",
     Severity::kWarning,
     Group::kNetwork,
     {"one host's link is far slower than the others'", "某台主机的链路远慢于其他主机"},
     {"Does a short burst pass at a like rate between all hosts?", "短时突发传输在各主机之间的速率是否相近？"},
     {"A ring all-reduce moves at the pace of its slowest link, so one host at 1 Gbit/s makes the whole job wait. Nothing fails; the GPUs "
      "show 100 % and "
      "draw little power. Causes: a card that negotiated down, a management port, a throttled virtual port, a bad cable.",
      "环形 all-reduce 的速度取决于最慢的链路，一台 1 Gbit/s 的主机会拖慢整个任务。不会报错，只是 GPU 利用率 100% "
      "而功耗很低。常见原因：网卡降速、误用管理口、虚拟端口限速、网线质量差。"},
     {"Compare speed and shaping with a host that is well:\n$ ethtool <interface> | grep Speed\n$ tc qdisc show dev <interface>\n$ phalanx "
      "bench fabric -H <hosts>",
      "与正常主机对比速率和限速设置：\n$ ethtool <interface> | grep Speed\n$ tc qdisc show dev <interface>\n$ phalanx bench fabric -H "
      "<hosts>"},
     "mesh test",
     slow_link},
    {"NET-LOSS",
     Severity::kWarning,
     Group::kNetwork,
     {"packets of one host are lost", "某台主机存在丢包"},
     {"Are about as many packets sent again on the links of every host?", "各主机链路上的重传数是否相近？"},
     {"TCP hides lost packets but pays for them: 5 % loss turned 390 MB/s into 74 MB/s in a test. Over RoCE it is worse. A cable, an "
      "optic, a full switch "
      "buffer, or half duplex.",
      "TCP 会掩盖丢包，但代价很大：实测 5% 丢包使 390 MB/s 降到 74 MB/s，RoCE 更糟。原因可能是网线、光模块、交换机缓冲溢出或半双工。"},
     {"$ nstat -az TcpRetransSegs\n$ ethtool -S <interface> | grep -iE 'err|drop|discard'\nChange the cable or the port.",
      "$ nstat -az TcpRetransSegs\n$ ethtool -S <interface> | grep -iE 'err|drop|discard'\n更换网线或交换机端口。"},
     "mesh test; TCP_INFO",
     loss},
    {"NET-SPEED-DIFFERS",
     Severity::kWarning,
     Group::kNetwork,
     {"a card negotiated a lower speed than the others", "某台主机的网卡协商速率低于其他主机"},
     {"Does the chosen interface run at the same speed on all hosts?", "所选网卡在各主机上的速率是否一致？"},
     {"A damaged cable or a wrong optic makes a 25 or 10 Gbit/s card fall to 1 Gbit/s or 100 Mbit/s without an error. All hosts then wait "
      "for this one.",
      "网线受损或光模块不匹配时，25/10 Gbit/s 的网卡会悄悄降到 1 Gbit/s 甚至 100 Mbit/s，所有主机都要等它。"},
     {"$ ethtool <interface>\nChange cable, optic or port, then:\n$ sudo ethtool -r <interface>",
      "$ ethtool <interface>\n更换网线、光模块或端口，然后：\n$ sudo ethtool -r <interface>"},
     "/sys/class/net/*/speed",
     speed_differs},
    {"NET-SLOW-NIC",
     Severity::kWarning,
     Group::kNetwork,
     {"gradients of several GPU hosts go over 1 Gbit/s", "多台 GPU 主机的梯度经由 1 Gbit/s 网络传输"},
     {"Is the network between GPU hosts faster than 1 Gbit/s?", "GPU 主机之间的网络是否快于 1 Gbit/s？"},
     {"1 Gbit/s is 118 MB/s: the gradients of a 7B model in bf16 (14 GB) take two minutes per step. Two hosts are then slower than one.",
      "1 Gbit/s 即 118 MB/s：7B 模型的 bf16 梯度（14 GB）每步就要传两分钟，两台机器反而比一台慢。"},
     {"Use a faster card if one has a cable, else accumulate gradients or stay on one host:\n$ phalanx check --iface <interface> -H "
      "<hosts>",
      "若有更快的网卡请使用它；否则增大梯度累积，或只用一台主机：\n$ phalanx check --iface <interface> -H <hosts>"},
     "",
     slow_card},
    {"NET-RX-ERRORS",
     Severity::kWarning,
     Group::kNetwork,
     {"an interface receives damaged packets", "网卡接收到大量损坏的数据包"},
     {"Are fewer than one in 10,000 packets damaged?", "损坏的数据包是否少于万分之一？"},
     {"Checksum and frame errors come from cables, optics and ports. TCP sends again and slows down; RoCE connections end with status=12.",
      "校验和错误与帧错误来自网线、光模块或端口。TCP 会重传并降速，RoCE 连接则以 status=12 终止。"},
     {"$ ethtool -S <interface> | grep -iE 'err|crc'\nChange cable or optic.",
      "$ ethtool -S <interface> | grep -iE 'err|crc'\n更换网线或光模块。"},
     "",
     receive_errors},
    {"NET-MTU-DIFFERS",
     Severity::kWarning,
     Group::kNetwork,
     {"the hosts' interfaces have different MTUs", "各主机网卡的 MTU 不一致"},
     {"Is the MTU of the chosen interface the same on all hosts?", "所选网卡的 MTU 在各主机上是否一致？"},
     {"TCP on one segment settles on the smaller, but RoCE, UDP and everything behind a router or tunnel does not: large packets then "
      "vanish, and the "
      "first large collective hangs.",
      "同一网段内 TCP 会采用较小值，但 RoCE、UDP 以及经过路由器或隧道的流量不会：大包丢失，第一次大的集合通信就会卡住。"},
     {"$ sudo ip link set dev <interface> mtu 9000", "$ sudo ip link set dev <interface> mtu 9000"},
     "",
     mtu_differs},
    {"NET-FLAPS",
     Severity::kWarning,
     Group::kNetwork,
     {"a link goes down and up again and again", "链路频繁断开又恢复"},
     {"Has the link been steady since boot?", "链路自启动以来是否稳定？"},
     {"A link that drops for a second is enough to end a job hours later: \"socketProgress: Connection closed by remote peer\", or IB "
      "status=12. Five losses "
      "in a day are the usual limit for taking a host out.",
      "链路断开一秒就足以让运行数小时的任务终止：“socketProgress: Connection closed by remote peer”，或 IB status=12。通常一天断开 5 "
      "次就应将该主机下线。"},
     {"Change the cable or the optic; to ride out short losses on InfiniBand:\n$ export NCCL_IB_TIMEOUT=22",
      "更换网线或光模块；InfiniBand 上可用以下设置容忍短暂中断：\n$ export NCCL_IB_TIMEOUT=22"},
     "Azure/azurehpc-health-checks: five in 24 h",
     flaps},
    {"NET-BOND-DEGRADED",
     Severity::kWarning,
     Group::kNetwork,
     {"a bond has lost one of its links", "bond 有成员链路断开"},
     {"Are all links of the bond up?", "bond 的所有成员链路是否都正常？"},
     {"A bond goes on with what is left and says nothing: half the bandwidth, and no spare.",
      "bond 会用剩余链路继续工作且不提示：带宽减半，也失去冗余。"},
     {"$ cat /proc/net/bonding/<interface>\nRepair the link whose \"MII Status\" is down.",
      "$ cat /proc/net/bonding/<interface>\n修复 “MII Status” 为 down 的成员。"},
     "/proc/net/bonding",
     bond_degraded},
    {"NET-BOND-UNEQUAL",
     Severity::kNote,
     Group::kNetwork,
     {"the links of a bond run at different speeds", "bond 成员链路速率不一致"},
     {"Do all links of the bond run at one speed?", "bond 的成员链路速率是否一致？"},
     {"Connections are spread over the links without regard to speed; some of NCCL's run on the slow one. LACP (802.3ad) leaves the odd "
      "link out altogether.",
      "连接在成员间的分配不考虑速率，NCCL 的部分连接会落在慢链路上；LACP（802.3ad）则会直接排除速率不同的成员。"},
     {"$ cat /proc/net/bonding/<interface>", "$ cat /proc/net/bonding/<interface>"},
     "",
     bond_unequal},
};

}  // namespace

std::span<const Row> network_link_rows() { return kNetworkLinkRows; }

}  // namespace doctor
