// What the mesh test found: connections that were really tried between the hosts.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "doctor/mesh_view.h"
#include "doctor/network_rows.h"
#include "doctor/network_view.h"

namespace doctor {
namespace {

std::string no_fix(size_t, const cluster::Link&) { return ""; }

void dropped(const Situation& s, Findings& f) {
  report_links(
      s, f, "timeout",
      [](const std::string& ways, const cluster::Link& link) -> Words {
        return {fmt::format("{}: silence for {}; the packets are thrown away on the way", ways, seconds(link.connect_ns)),
                fmt::format("{}：{} 内没有任何回应，数据包在途中被丢弃", ways, seconds(link.connect_ns))};
      },
      [&](size_t host, const cluster::Link&) { return open_firewall(s, host); });
}

void refused(const Situation& s, Findings& f) {
  report_links(
      s, f, "refused",
      [](const std::string& ways, const cluster::Link&) -> Words {
        return {ways + ": refused at once, though our agent was listening there; a firewall answers with a TCP reset",
                ways + "：立即被拒绝，而我们的 agent 当时正在该端口监听；说明有防火墙以 TCP reset 应答"};
      },
      [&](size_t host, const cluster::Link&) { return open_firewall(s, host); });
}

void rejected(const Situation& s, Findings& f) {
  report_links(
      s, f, "rejected",
      [](const std::string& ways, const cluster::Link& link) -> Words {
        return {fmt::format("{}: refused after {}; a firewall rejects (port unreachable)", ways, seconds(link.connect_ns)),
                fmt::format("{}：{} 后被拒绝；防火墙 REJECT（port unreachable）", ways, seconds(link.connect_ns))};
      },
      [&](size_t host, const cluster::Link&) { return open_firewall(s, host); });
}

void prohibited(const Situation& s, Findings& f) {
  report_links(
      s, f, "prohibited",
      [](const std::string& ways, const cluster::Link& link) -> Words {
        return {fmt::format("{}: \"No route to host\" (errno 113) after {}, sent by a firewall, not by a router", ways,
                            seconds(link.connect_ns)),
                fmt::format("{}：{} 后报“No route to host”（errno 113），这是防火墙发出的，并非路由问题", ways, seconds(link.connect_ns))};
      },
      [&](size_t host, const cluster::Link&) { return open_firewall(s, host); });
}

// A route that refuses is told by the error of its look-up (linux net/ipv4/fib_semantics.c, fib_props).
std::string refusing_route(const Situation& s, const cluster::Link& link) {
  const std::vector<host::Route>& routes = s.hosts[static_cast<size_t>(link.from)].facts.network.routes;
  auto route = std::find_if(routes.begin(), routes.end(), [&](const host::Route& r) { return r.to == link.address; });
  if (route == routes.end()) return "";
  for (int error : {EHOSTUNREACH, EACCES, EINVAL})
    if (route->error == std::strerror(error)) return error == EHOSTUNREACH ? "unreachable" : error == EACCES ? "prohibit" : "blackhole";
  return "";
}

void no_route(const Situation& s, Findings& f) {
  for (const Blame& b : blame(s, [](const cluster::Link& link) { return link.outcome == "no-route"; })) {
    std::vector<size_t> senders;
    for (const cluster::Link* link : b.links)
      if (auto from = static_cast<size_t>(link->from); std::find(senders.begin(), senders.end(), from) == senders.end())
        senders.push_back(from);
    if (senders.size() > 1) senders = b.hosts;
    const cluster::Link& first = *b.links[0];
    std::string text = ways(s, b), type = refusing_route(s, first);
    if (!type.empty()) {
      f.on(senders,
           {fmt::format("{}: refused by a route of type \"{}\" in the sender's own table", text, type),
            fmt::format("{}：被发送方自己路由表中的“{}”路由拒绝", text, type)},
           fmt::format("sudo ip route del $(ip route show type {} match {} | tail -n 1)", type, first.address));
      continue;
    }
    const char* error = std::strerror(static_cast<int>(first.error_number));
    f.on(senders,
         {fmt::format("{}: {} (errno {}); the sender's routing table has no way there", text, error, first.error_number),
          fmt::format("{}：{}（errno {}），发送方的路由表中没有去往该地址的路由", text, error, first.error_number)},
         "ip route get " + first.address);
  }
}

void unreachable(const Situation& s, Findings& f) {
  report_links(
      s, f, "unreachable",
      [](const std::string& ways, const cluster::Link& link) -> Words {
        return {fmt::format("{}: \"No route to host\" (errno 113) after {}; nobody answers ARP for that address", ways,
                            seconds(link.connect_ns)),
                fmt::format("{}：{} 后报“No route to host”（errno 113），该地址没有主机应答 ARP", ways, seconds(link.connect_ns))};
      },
      [&](size_t, const cluster::Link& link) { return "ip neigh show " + link.address; });
}

void mtu_hole(const Situation& s, Findings& f) {
  report_links(
      s, f, "stalled",
      [](const std::string& ways, const cluster::Link&) -> Words {
        return {ways + ": connects, but larger packets never arrive; something on the way has a smaller MTU and says nothing",
                ways + "：能建立连接，但大包始终到不了；途中某处 MTU 更小且没有任何提示"};
      },
      [&](size_t host, const cluster::Link&) -> std::string {
        const host::Interface* i = chosen_interface(s.hosts[host]);
        if (!i) return "";
        return fmt::format("sudo ip link set dev {} mtu {}", i->name, i->mtu > 1500 ? 1500 : 1400);
      });
}

void stranger(const Situation& s, Findings& f) {
  report_links(
      s, f, "stranger",
      [](const std::string& ways, const cluster::Link&) -> Words {
        return {ways + ": somebody else answers there; another machine has the same address, or another program the port",
                ways + "：应答者不是目标主机；要么另一台机器占用了相同的 IP，要么另一个程序占用了该端口"};
      },
      [&](size_t host, const cluster::Link& link) -> std::string {
        const host::Interface* i = chosen_interface(s.hosts[host]);
        return i ? fmt::format("sudo arping -D -I {} -c 3 {}", i->name, link.address) : "";
      });
}

// a → b fails while b → a passes: neither cable nor address, but a filter or a return path.
void one_way(const Situation& s, Findings& f) {
  std::vector<const cluster::Link*> links = links_of(s);
  auto failed = [&](const cluster::Link& link) {
    if (link.outcome == "ok" || link.outcome.empty() || link.outcome == "stranger") return false;
    return std::any_of(links.begin(), links.end(), [&](const cluster::Link* back) {
      return back->from == link.to && back->to == link.from && back->master_port == link.master_port && back->outcome == "ok";
    });
  };
  for (const Blame& b : blame(s, failed)) {
    std::string text = ways(s, b);
    f.on(b.hosts, {text + " fails while the way back passes", text + " 不通，而反方向是通的"});
  }
}

void other_error(const Situation& s, Findings& f) {
  report_links(
      s, f, "error",
      [](const std::string& ways, const cluster::Link& link) -> Words {
        return {fmt::format("{}: errno {}", ways, link.error_number), fmt::format("{}：errno {}", ways, link.error_number)};
      },
      no_fix);
}

constexpr Row kNetworkMeshRows[] = {
    {"NET-PORT-DROPPED",
     Severity::kError,
     Group::kNetwork,
     {"packets between the hosts vanish: a port is dropped", "主机之间的数据包被丢弃：端口被 DROP"},
     {"Does every host get an answer from every other, on MASTER_PORT and on an ephemeral port?",
      "每台主机能否连通其他所有主机（MASTER_PORT 以及临时端口）？"},
     {"A connect to a port that a firewall drops waits for 131 s (six SYN retries) and fails with errno 110. Until then there is silence: "
      "torch says \"The client socket has timed out after …ms while trying to connect to (…)\", NCCL \"connect to … returned Connection "
      "timed "
      "out, retrying\" (2.24 and later) or \"Software caused connection abort\" (before).\nThe master port alone is not enough: NCCL and "
      "Gloo "
      "listen on ephemeral ports (ip_local_port_range), so all TCP between the hosts of a job must pass.",
      "连接被防火墙 DROP 的端口要等 131 秒（6 次 SYN 重传）才以 errno 110 失败，在此之前没有任何输出：torch 报 “The client socket has "
      "timed out "
      "after …ms while trying to connect to (…)”，NCCL 报 “connect to … returned Connection timed out, retrying”（2.24 起）或 “Software "
      "caused "
      "connection abort”（更早版本）。\n只放行 master 端口不够：NCCL 和 Gloo 在临时端口（ip_local_port_range）上监听，任务各主机之间的 TCP "
      "必须全部放行。"},
     {"Let the hosts of the job reach each other on all TCP ports:\n$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> "
      "&& sudo firewall-cmd --reload\n$ sudo ufw allow from <subnet>\n$ sudo iptables -I INPUT -s <subnet> -j ACCEPT\nIn a cloud, the "
      "security group must allow all TCP from itself.",
      "放行任务各主机之间的所有 TCP 端口（按所用防火墙选择一条）：\n$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> "
      "&& sudo firewall-cmd --reload\n$ sudo ufw allow from <subnet>\n$ sudo iptables -I INPUT -s <subnet> -j "
      "ACCEPT\n云上则需要让安全组放行组内全部 TCP。"},
     "torch/csrc/distributed/c10d/socket.cpp; nccl src/misc/socket.cc; NVIDIA/nccl#1515",
     dropped},
    {"NET-PORT-REFUSED",
     Severity::kError,
     Group::kNetwork,
     {"a firewall resets connections between the hosts", "防火墙重置了主机之间的连接"},
     {"Is a connection to a port where our agent listens accepted?", "连接 agent 正在监听的端口时是否被接受？"},
     {"The agent listened on the port while it was tried, so \"Connection refused\" (errno 111) at once can only be a firewall that "
      "rejects with a TCP reset. torch retries (\"No socket on (…) is listening yet, will retry\") until its timeout, NCCL for about 60 s.",
      "尝试连接时 agent 正在监听该端口，因此立即返回的 “Connection refused”（errno 111）只可能来自以 TCP reset 拒绝连接的防火墙。torch "
      "会一直重试（“No socket "
      "on (…) is listening yet, will retry”）直到超时，NCCL 约重试 60 秒。"},
     {"Remove the reject rule, or accept the job's hosts before it:\n$ sudo nft list ruleset\n$ sudo iptables -I INPUT -s <subnet> -j "
      "ACCEPT",
      "删除该 reject 规则，或在其之前放行任务主机：\n$ sudo nft list ruleset\n$ sudo iptables -I INPUT -s <subnet> -j ACCEPT"},
     "torch/csrc/distributed/c10d/socket.cpp",
     refused},
    {"NET-PORT-REJECTED",
     Severity::kError,
     Group::kNetwork,
     {"a firewall rejects connections between the hosts", "防火墙拒绝了主机之间的连接"},
     {"Is a connection accepted, or refused only after about a second?", "连接是被接受，还是约一秒后才被拒绝？"},
     {"A missing listener refuses at once. A refusal after about a second is an ICMP \"port unreachable\" that a firewall (REJECT) sends. "
      "The "
      "job sees \"Connection refused\" (errno 111) and takes it for a master that has not started.",
      "没有监听者时会立即拒绝；约一秒后才拒绝，是防火墙（REJECT）发回的 ICMP “port unreachable”。程序看到的是 “Connection refused”（errno "
      "111），"
      "容易被误认为 master 尚未启动。"},
     {"Accept the hosts of the job before the reject rule:\n$ sudo iptables -I INPUT -s <subnet> -j ACCEPT",
      "在 REJECT 规则之前放行任务主机：\n$ sudo iptables -I INPUT -s <subnet> -j ACCEPT"},
     "linux net/ipv4/icmp.c; measured",
     rejected},
    {"NET-PROHIBITED",
     Severity::kError,
     Group::kNetwork,
     {"a firewall answers \"administratively prohibited\"", "防火墙应答“管理性禁止”"},
     {"Is \"No route to host\" really a routing problem?", "“No route to host” 真的是路由问题吗？"},
     {"firewalld (RHEL, CentOS, Rocky) rejects with ICMP \"admin prohibited\", which programs see as errno 113, \"No route to host\". "
      "People then "
      "look for cables and routes while the port is simply closed.",
      "firewalld（RHEL、CentOS、Rocky）以 ICMP “admin prohibited” 拒绝连接，程序看到的是 errno 113 “No route to "
      "host”。于是人们去查网线和路由，"
      "而实际上只是端口没有放行。"},
     {"$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> && sudo firewall-cmd --reload",
      "$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> && sudo firewall-cmd --reload"},
     "linux net/ipv4/icmp.c icmp_err_convert; measured",
     prohibited},
    {"NET-NO-ROUTE",
     Severity::kError,
     Group::kNetwork,
     {"a host has no route to another", "主机没有去往其他主机的路由"},
     {"Does each host have a route to each other's address?", "每台主机是否都有去往其他主机地址的路由？"},
     {"The kernel refuses to send: \"Network is unreachable\" (errno 101), at once. The two addresses are in different networks and there "
      "is no "
      "gateway between them, or the interface is down.",
      "内核直接拒绝发送，立即报 “Network is unreachable”（errno 101）：两个地址不在同一网络且没有网关，或者网卡没有启用。"},
     {"Bring the interface up, give the hosts addresses of one network, or add the route:\n$ ip route get <address>\n$ sudo ip route add "
      "<subnet> via <address>",
      "启用网卡、给各主机配置同一网络的地址，或添加路由：\n$ ip route get <address>\n$ sudo ip route add <subnet> via <address>"},
     "",
     no_route},
    {"NET-UNREACHABLE",
     Severity::kError,
     Group::kNetwork,
     {"an address does not answer ARP", "地址没有应答 ARP"},
     {"Does the address of every host answer on the local network?", "每台主机的地址在本地网络中是否有应答？"},
     {"After about 3 s the kernel gives up on ARP and says \"No route to host\" (errno 113). The machine is down, its cable is out, it has "
      "another "
      "address, or the two are in different VLANs although their addresses are in one subnet.",
      "ARP 约 3 秒无人应答后，内核报 “No route to host”（errno 113）：对方关机、网线断开、地址不对，或两台机器地址虽在同一子网却位于不同 "
      "VLAN。"},
     {"Compare address, cable and VLAN on both hosts:\n$ ip -br address\n$ ip neigh show <address>",
      "在两台主机上核对地址、网线和 VLAN：\n$ ip -br address\n$ ip neigh show <address>"},
     "",
     unreachable},
    {"NET-MTU-HOLE",
     Severity::kError,
     Group::kNetwork,
     {"small packets pass and large ones vanish (MTU)", "小包能通、大包丢失（MTU 黑洞）"},
     {"Does a payload larger than the MTU pass in both directions?", "超过 MTU 的数据能否双向通过？"},
     {"The rendezvous works, \"Init COMPLETE\" appears, and the first large collective hangs without a word until the watchdog's timeout. "
      "A switch, "
      "tunnel or VPN on the way takes smaller packets than the interface sends, and the ICMP that would say so is blocked.",
      "会合正常，甚至已打印 “Init COMPLETE”，但第一次大的集合通信无声地卡住，直到 watchdog 超时。途中的交换机、隧道或 VPN "
      "允许的包比网卡发送的小，而本应告知的 ICMP 又被屏蔽。"},
     {"Set the MTU that the whole path takes on all hosts, and find it with:\n$ ping -M do -s 1472 -c 3 <address>\n$ sudo ip link set dev "
      "<interface> mtu 1400",
      "在所有主机上设置整条路径都支持的 MTU，可用 ping 探测：\n$ ping -M do -s 1472 -c 3 <address>\n$ sudo ip link set dev <interface> mtu "
      "1400"},
     "measured: packets above 1400 bytes dropped",
     mtu_hole},
    {"NET-STRANGER",
     Severity::kError,
     Group::kNetwork,
     {"somebody else answers at a host's address", "在主机地址上应答的是别的机器"},
     {"Is it the peer itself that answers at its address and port?", "在该地址和端口上应答的是否就是目标主机？"},
     {"The token that came back was not the peer's. Two machines share one address (a clone, a static address inside the DHCP range, an "
      "address "
      "such as 172.17.0.1 that every host has), or a proxy or another program holds the port. Training then connects to the wrong machine: "
      "\"socketFinalizeAccept … wrong type\", \"message truncated\", or a hang.",
      "返回的标记不属于目标主机：两台机器用了同一个 IP（克隆的系统、静态地址落在 DHCP 范围内、每台主机都有的 172.17.0.1 "
      "之类），或者端口被代理或其他程序占用。"
      "训练会连到错误的机器：“socketFinalizeAccept … wrong type”、“message truncated”，或者直接卡住。"},
     {"Find who has the address, then change one of them:\n$ sudo arping -D -I <interface> -c 3 <address>",
      "查出谁占用了该地址，再修改其中之一：\n$ sudo arping -D -I <interface> -c 3 <address>"},
     "",
     stranger},
    {"NET-ONE-WAY",
     Severity::kNote,
     Group::kNetwork,
     {"connections pass in one direction only", "连接只有单向可通"},
     {"Does each pair of hosts connect in both directions?", "每对主机是否双向都能建立连接？"},
     {"The cable, the addresses and the switch are right, since the way back works. What is left is a firewall on the host that cannot be "
      "reached, "
      "or a return path that leaves by another interface and is thrown away by rp_filter.",
      "既然反方向能通，网线、地址和交换机都没有问题。剩下的可能是：不可达主机上的防火墙，或者回程走了另一块网卡而被 rp_filter 丢弃。"},
     {"Look at the firewall of the host that is not reached, and at its routes:\n$ sudo nft list ruleset\n$ ip route get <address>",
      "检查不可达主机的防火墙与路由：\n$ sudo nft list ruleset\n$ ip route get <address>"},
     "",
     one_way},
    {"NET-CONNECT-ERROR",
     Severity::kError,
     Group::kNetwork,
     {"a connection between two hosts fails", "两台主机之间的连接失败"},
     {"Does each pair of hosts connect?", "每对主机能否建立连接？"},
     {"The connection was tried and failed with an error that is none of the known kinds; the number in the evidence is errno. Ranks that "
      "connect "
      "between these hosts will fail with the same error.",
      "实际尝试连接时失败，且不属于已知的几类；证据中的数字即 errno。rank 在这两台主机之间建立连接时会遇到同样的错误。"},
     {"Try by hand what failed:\n$ nc -vz -w 3 <address> <port>", "手动重试该连接：\n$ nc -vz -w 3 <address> <port>"},
     "",
     other_error},
};

}  // namespace

std::span<const Row> network_mesh_rows() { return kNetworkMeshRows; }

}  // namespace doctor
