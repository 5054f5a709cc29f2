// Which address NCCL and Gloo would take by themselves, and whether the other hosts could reach it there.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/network_rows.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"
#include "host/network_text.h"

namespace doctor {
namespace {

struct Choice {
  size_t host = 0;
  host::SocketChoice choice;
  const host::Interface* interface = nullptr;  // may be null: an alias
  std::string network;
};

// NCCL's choice on every host where it is known and there is one.
std::vector<Choice> nccl_choices(const Situation& s) {
  std::vector<Choice> all;
  for (size_t h : probed(s)) {
    std::optional<host::SocketChoice> c = nccl_choice_of(s, h);
    if (!c || c->interface.empty()) continue;
    Choice out{h, *c, nullptr, ""};
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses)
        if (a.address == c->address) out.interface = &i, out.network = host::network_of(a.address, a.prefix);
    all.push_back(std::move(out));
  }
  return all;
}

bool is_decoy_kind(const std::string& kind) {
  return kind == "bridge" || kind == "docker" || kind == "veth" || kind == "virtual" || kind == "vpn" || kind == "loopback";
}

std::string set_variables(const Situation& s, size_t h) {
  const host::Interface* chosen = chosen_interface(s.hosts[h]);
  if (!chosen || chosen->loopback) return "";
  return fmt::format("export NCCL_SOCKET_IFNAME=={0} GLOO_SOCKET_IFNAME={0}", chosen->name);
}

std::string brief(const Choice& c) { return fmt::format("{} {} ({})", c.choice.interface, c.choice.address, c.choice.why); }

// Hosts that NCCL would give one and the same address. Two entries for one machine are another finding's matter.
std::vector<std::vector<Choice>> sharing(const Situation& s) {
  std::vector<std::vector<Choice>> groups;
  for (const Choice& c : nccl_choices(s)) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g[0].choice.address == c.choice.address; });
    if (same == groups.end()) groups.push_back({c});
    else same->push_back(c);
  }
  std::erase_if(groups, [&](const auto& group) {
    std::set<std::string> machines;
    for (const Choice& c : group) machines.insert(network_stack(s.hosts[c.host]));
    return group.size() < 2 || (machines.size() < 2 && !machines.count(""));
  });
  return groups;
}

void decoy(const Situation& s, Findings& findings, bool by_user) {
  for (const std::vector<Choice>& group : sharing(s)) {
    if ((nccl_settings_of(s, group[0].host).ifname.size() > 1) != by_user) continue;
    std::vector<size_t> hosts;
    for (const Choice& c : group) hosts.push_back(c.host);
    findings.on(hosts,
                {fmt::format("NCCL would take {} on all of them; each would connect to itself", brief(group[0])),
                 fmt::format("NCCL 在这些主机上都会选用 {}，结果每台主机连接的都是自己", brief(group[0]))},
                set_variables(s, group[0].host));
  }
}
void same_decoy(const Situation& s, Findings& f) { decoy(s, f, false); }
void ifname_decoy(const Situation& s, Findings& f) { decoy(s, f, true); }

bool routed(const Situation& s, const Choice& c) {  // as far as is known, every other host has a way there
  bool known = false;
  for (size_t h : probed(s))
    for (const host::Route& r : s.hosts[h].facts.network.routes) {
      if (h == c.host || r.to != c.choice.address) continue;
      if (!r.error.empty()) return false;
      known = true;
    }
  return known;
}

void wrong_interface(const Situation& s, Findings& findings) {
  std::vector<Choice> all = nccl_choices(s);
  std::set<std::string> networks;
  for (const Choice& c : all) networks.insert(c.network);
  if (all.size() < 2 || networks.size() < 2) return;
  for (const Choice& c : all) {
    const HostView& view = s.hosts[c.host];
    std::string right = network_of_chosen(view);
    if (view.address.empty() || right.empty() || c.choice.address == view.address || c.network == right) continue;
    bool alone = std::count_if(all.begin(), all.end(), [&](const Choice& o) { return o.network == c.network; }) == 1;
    bool doubtful = (c.interface && is_decoy_kind(c.interface->kind)) || !routed(s, c);
    if (!alone || !doubtful) continue;
    findings.on(c.host,
                {fmt::format("NCCL would take {}; the hosts share {}, here {} on {}", brief(c), right, view.address, view.interface),
                 fmt::format("NCCL 会选用 {}；而各主机共有的网络是 {}，本机为 {} 上的 {}", brief(c), right, view.interface, view.address)},
                set_variables(s, c.host));
  }
}

void down_interface(const Situation& s, Findings& findings) {
  for (const Choice& c : nccl_choices(s)) {
    if (s.single() || !c.interface || c.interface->running || c.interface->loopback) continue;
    findings.on(c.host,
                {fmt::format("NCCL {} would take {}, which is not running (state {})",
                             s.hosts[c.host].facts.software.nccl.empty() ? "" : s.hosts[c.host].facts.software.nccl[0].version, brief(c),
                             c.interface->state),
                 fmt::format("NCCL 会选用 {}，但该网卡没有运行（状态 {}）", brief(c), c.interface->state)},
                set_variables(s, c.host));
  }
}

void link_local(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const Choice& c : nccl_choices(s))
    if (host::is_link_local_address(c.choice.address))
      findings.on(c.host,
                  {fmt::format("NCCL would take {}, a link-local address", brief(c)), fmt::format("NCCL 会选用链路本地地址 {}", brief(c))},
                  c.choice.address.find(':') != std::string::npos ? "export NCCL_SOCKET_FAMILY=AF_INET" : set_variables(s, c.host));
}

void docker_bridge(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const Choice& c : nccl_choices(s)) {
    const HostView& view = s.hosts[c.host];
    if (view.facts.machine.container.empty() || host::network_of(c.choice.address, 16) != "172.17.0.0/16") continue;
    bool reached = false;
    for (size_t other = 0; other < s.hosts.size(); ++other) reached |= view.address == c.choice.address && link_passed(s, c.host, other);
    if (!reached)
      findings.on(c.host, {fmt::format("in a container ({}) with {} of docker's own bridge", view.facts.machine.container, brief(c)),
                           fmt::format("位于容器（{}）中，地址 {} 属于 docker 自带网桥", view.facts.machine.container, brief(c))});
  }
}

void vpn_path(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (size_t h : probed(s))
    if (const host::Interface* i = chosen_interface(s.hosts[h]); i && i->kind == "vpn")
      findings.on(h, {fmt::format("the hosts would meet on {} {}, a VPN", i->name, s.hosts[h].address),
                      fmt::format("各主机将通过 VPN 网卡 {}（{}）通信", i->name, s.hosts[h].address)});
}

constexpr Row kNetworkChoiceRows[] = {
    {"NET-SAME-DECOY",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL would take the same address on several hosts", "NCCL 会在多台主机上选用同一个地址"},
     {"Is the address that NCCL would take by itself different on every host?", "NCCL 自动选用的地址在每台主机上是否互不相同？"},
     {"NCCL takes the first interface that is not docker* or lo (from 2.28 not virbr* either) and never asks whether it can be reached. "
      "docker0 "
      "has 172.17.0.1 and virbr0 192.168.122.1 on every machine, so every rank advertises the same address and connects to itself: the log "
      "says "
      "\"Bootstrap : Using virbr0:192.168.122.1<0>\" on all hosts, and nothing more until the timeout.\n`phalanx run` sets "
      "NCCL_SOCKET_IFNAME where it is needed; "
      "other launchers do not.",
      "NCCL 选用第一个不是 docker*、lo 的网卡（2.28 起也跳过 virbr*），并不检查是否可达。而 docker0 的 172.17.0.1、virbr0 的 192.168.122.1 "
      "在每台机器上都一样，"
      "于是每个 rank 公布的地址相同，连接的都是自己：所有主机的日志都是 “Bootstrap : Using "
      "virbr0:192.168.122.1<0>”，之后再无输出，直到超时。\n`phalanx run` "
      "会在需要时自动设置 NCCL_SOCKET_IFNAME，其他启动器不会。"},
     {"Name the interface (\"=\" means exactly this name):\n$ export NCCL_SOCKET_IFNAME==<interface> GLOO_SOCKET_IFNAME=<interface>\nor "
      "let phalanx run choose it.",
      "指定网卡（“=” 表示名字完全一致）：\n$ export NCCL_SOCKET_IFNAME==<interface> GLOO_SOCKET_IFNAME=<interface>\n或者交给 phalanx run "
      "自动选择。"},
     "nccl src/misc/socket.cc findInterfaces; hiyouga/LlamaFactory#8274; NVIDIA/nccl#1515",
     same_decoy},
    {"NET-IFNAME-DECOY",
     Severity::kError,
     Group::kNetwork,
     {"NCCL_SOCKET_IFNAME leads to the same address on several hosts", "NCCL_SOCKET_IFNAME 使多台主机选中同一个地址"},
     {"Does the interface the user named have its own address on every host?", "用户指定的网卡在每台主机上的地址是否互不相同？"},
     {"NCCL_SOCKET_IFNAME names an interface that has one and the same address on several hosts (docker0: 172.17.0.1, virbr0: "
      "192.168.122.1). Every "
      "rank connects to its own machine; the job hangs in \"Bootstrap\" and ends with a timeout.",
      "NCCL_SOCKET_IFNAME 指定的网卡在多台主机上地址完全相同（docker0 为 172.17.0.1，virbr0 为 192.168.122.1）。每个 rank "
      "都连到自己的机器，任务卡在 “Bootstrap” "
      "直到超时。"},
     {"Name the interface that the hosts share, or leave the choice to Phalanx:\n$ unset NCCL_SOCKET_IFNAME\n$ export "
      "NCCL_SOCKET_IFNAME==<interface>",
      "改成各主机共有网络上的网卡，或交给 Phalanx 选择：\n$ unset NCCL_SOCKET_IFNAME\n$ export NCCL_SOCKET_IFNAME==<interface>"},
     "nccl src/misc/socket.cc",
     ifname_decoy},
    {"NET-WRONG-IFACE",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL would take an interface the other hosts do not reach", "NCCL 会选用其他主机无法到达的网卡"},
     {"Is the address NCCL would take by itself in a network the hosts share?", "NCCL 自动选用的地址是否在各主机共有的网络中？"},
     {"Of several interfaces NCCL takes the first in the kernel's order (ib* first, docker* and lo last) without a test. On this host that "
      "is another "
      "network than on the others: the bootstrap hangs, with \"socketStartConnect: Connect to … failed\" or \"Connection timed out, "
      "retrying\".",
      "有多块网卡时，NCCL 按内核顺序选第一块（ib* 优先，docker*、lo 最后），不做可达性检查。本机选中的网络与其他主机不同，bootstrap "
      "会卡住，报 “socketStartConnect: "
      "Connect to … failed” 或 “Connection timed out, retrying”。"},
     {"Name the shared interface on that host, or let phalanx run do so:\n$ export NCCL_SOCKET_IFNAME==<interface> "
      "GLOO_SOCKET_IFNAME=<interface>",
      "在该主机上指定共有网络的网卡，或交给 phalanx run：\n$ export NCCL_SOCKET_IFNAME==<interface> GLOO_SOCKET_IFNAME=<interface>"},
     "nccl src/misc/socket.cc findInterfaces",
     wrong_interface},
    {"NET-DOWN-IFACE",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL would take an interface that is down", "NCCL 会选用未启用的网卡"},
     {"Does the interface NCCL would take run?", "NCCL 选用的网卡是否在运行？"},
     {"Before 2.28 NCCL did not look at the state of an interface: an ib0 or eno1 without a cable that still has an address is taken all "
      "the same, and "
      "the bootstrap hangs.",
      "2.28 之前的 NCCL 不看网卡状态：ib0 或 eno1 没插线但配有地址时同样会被选中，bootstrap 随即卡住。"},
     {"Take the address off the dead interface, or name the right one:\n$ sudo ip address flush dev <interface>\n$ export "
      "NCCL_SOCKET_IFNAME==<interface>",
      "清除未启用网卡上的地址，或指定正确的网卡：\n$ sudo ip address flush dev <interface>\n$ export NCCL_SOCKET_IFNAME==<interface>"},
     "nccl src/misc/socket.cc: IFF_RUNNING since 2.28.3",
     down_interface},
    {"NET-LINK-LOCAL",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL would take a link-local address", "NCCL 会选用链路本地地址"},
     {"Is NCCL's address one that other machines can use?", "NCCL 选用的地址能否被其他机器使用？"},
     {"fe80::… and 169.254.… are valid on one cable only. NCCL takes them where an interface has no other address: \"Connect to "
      "fe80::…%ib1<…> failed\".",
      "fe80::… 与 169.254.… 只在单条链路内有效。网卡没有其他地址时 NCCL 就会选用它们：“Connect to fe80::…%ib1<…> failed”。"},
     {"$ export NCCL_SOCKET_FAMILY=AF_INET\nor give the interface an address, or name another:\n$ export NCCL_SOCKET_IFNAME==<interface>",
      "$ export NCCL_SOCKET_FAMILY=AF_INET\n或给该网卡配置地址，或指定其他网卡：\n$ export NCCL_SOCKET_IFNAME==<interface>"},
     "NVIDIA/nccl#975",
     link_local},
    {"NET-DOCKER-BRIDGE",
     Severity::kWarning,
     Group::kNetwork,
     {"a container has only docker's bridge as its network", "容器只接在 docker 自带网桥上"},
     {"Can other machines reach the address inside the container?", "其他机器能否访问容器内的地址？"},
     {"A container without `--network host` has an address of docker's own bridge (172.17.0.0/16). NCCL advertises it (\"Bootstrap : Using "
      "eth0:172.17.0.2<0>\"), and no other machine can connect to it.",
      "容器没有使用 `--network host` 时，地址来自 docker 自带网桥（172.17.0.0/16）。NCCL 会公布该地址（“Bootstrap : Using "
      "eth0:172.17.0.2<0>”），其他机器无法连接。"},
     {"Start the containers with the host's network:\n$ docker run --network host --ipc host --gpus all …",
      "让容器使用主机网络：\n$ docker run --network host --ipc host --gpus all …"},
     "",
     docker_bridge},
    {"NET-VPN-PATH",
     Severity::kWarning,
     Group::kNetwork,
     {"the hosts would talk over a VPN", "主机之间将通过 VPN 通信"},
     {"Is the network between the hosts a real one?", "主机之间走的是否是物理网络？"},
     {"WireGuard, Tailscale, ZeroTier and the like encrypt every byte on one CPU core and often have an MTU of 1280 to 1420: a tenth of "
      "the "
      "network below. Gradients of a 7B model are 14 GB per step.",
      "WireGuard、Tailscale、ZeroTier 等由单个 CPU 核对每个字节加密，MTU 往往只有 1280～1420，速度大约只有底层网络的十分之一，而 7B "
      "模型每步梯度就有 14 GB。"},
     {"Use the addresses of the physical network in the host list, or:\n$ phalanx check --iface <interface> -H <hosts>",
      "在主机列表中使用物理网络的地址，或者：\n$ phalanx check --iface <interface> -H <hosts>"},
     "",
     vpn_path},
};

}  // namespace

std::span<const Row> network_choice_rows() { return kNetworkChoiceRows; }

}  // namespace doctor
