// Names: whom they stand for, on which host, and one machine under two of them.
#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/address_words.h"
#include "doctor/rows_rendezvous.h"

namespace doctor {
namespace {

bool several(const Situation& s) { return s.hosts.size() > 1; }

std::string list(const std::vector<std::string>& words) { return base::join(words, ", "); }

void name_loopback(const Situation& s, Findings& findings) {
  if (!several(s)) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (!host.probed || s.variable(h, "GLOO_SOCKET_IFNAME")) continue;
    const host::Resolved* own = resolved(host, host.facts.machine.hostname);
    if (!own || own->addresses.empty() || !is_loopback(own->addresses[0])) continue;
    const std::string& line = host.facts.network.hosts_file_loopback_name;
    std::string said = line.empty() ? "" : fmt::format(" (/etc/hosts: {})", base::shell_quote(base::trim(line)));
    findings.on(h,
                {fmt::format("its own name {} is {}{}", own->name, own->addresses[0], said),
                 fmt::format("本机名 {} 解析为 {}{}", own->name, own->addresses[0], said)},
                host.interface.empty() ? "" : fmt::format("export GLOO_SOCKET_IFNAME={}", host.interface));
  }
}

// Several containers of one machine are hosts of their own: they have names and addresses of their own.
bool same_addresses(const HostView& a, const HostView& b) {
  auto addresses = [](const HostView& h) {
    std::vector<std::string> all;
    for (const host::Interface& i : h.facts.network.interfaces)
      for (const host::InterfaceAddressFact& at : i.addresses)
        if (!i.loopback && !is_loopback(at.address) && at.address.rfind("fe80:", 0) != 0) all.push_back(at.address);
    std::sort(all.begin(), all.end());
    return all;
  };
  std::vector<std::string> of_a = addresses(a);
  return !of_a.empty() && of_a == addresses(b);
}

bool same_machine(const HostView& a, const HostView& b) {
  const host::Machine &m = a.facts.machine, &n = b.facts.machine;
  return !m.boot_id.empty() && m.boot_id == n.boot_id && m.hostname == n.hostname && same_addresses(a, b);
}

void each_pair(const Situation& s, const std::function<void(size_t, size_t)>& visit) {
  for (size_t a = 0; a < s.hosts.size(); ++a)
    for (size_t b = a + 1; b < s.hosts.size(); ++b)
      if (s.hosts[a].probed && s.hosts[b].probed) visit(a, b);
}

void duplicate_hostname(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && !s.hosts[h].facts.machine.hostname.empty()) by_name[s.hosts[h].facts.machine.hostname].push_back(h);
  for (const auto& [name, hosts] : by_name) {
    if (hosts.size() < 2 || same_machine(s.hosts[hosts[0]], s.hosts[hosts[1]])) continue;
    size_t renamed = s.hosts[hosts[0]].name == name ? hosts[1] : hosts[0];
    findings.on(hosts, {fmt::format("both call themselves {}", name), fmt::format("都自称 {}", name)},
                fmt::format("sudo hostname {}", base::shell_quote(s.hosts[renamed].name)), s.hosts[renamed].name);
  }
}

void same_machine_twice(const Situation& s, Findings& findings) {
  each_pair(s, [&](size_t a, size_t b) {
    if (!same_machine(s.hosts[a], s.hosts[b])) return;
    findings.on({a, b},
                {fmt::format("{} and {} are one machine (boot id {})", s.hosts[a].name, s.hosts[b].name, s.hosts[a].facts.machine.boot_id),
                 fmt::format("{} 和 {} 是同一台机器（boot id {}）", s.hosts[a].name, s.hosts[b].name, s.hosts[a].facts.machine.boot_id)});
  });
}

// Cloned images: services that take it for an identity (DHCP leases, agents) mix the machines up.
void machine_id(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_id;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && !s.hosts[h].facts.machine.machine_id.empty()) by_id[s.hosts[h].facts.machine.machine_id].push_back(h);
  for (const auto& [id, hosts] : by_id) {
    if (hosts.size() < 2 || !s.hosts[hosts[0]].facts.machine.container.empty()) continue;
    if (s.hosts[hosts[0]].facts.machine.boot_id == s.hosts[hosts[1]].facts.machine.boot_id) continue;  // one machine
    findings.on(hosts, {fmt::format("/etc/machine-id is {} on each", id), fmt::format("/etc/machine-id 都是 {}", id)},
                "sudo rm /etc/machine-id && sudo systemd-machine-id-setup");
  }
}

void host_id(const Situation& s, Findings& findings) {
  if (!s.job.wants_gpus) return;
  std::map<std::string, std::vector<size_t>> by_id;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed)
      if (std::optional<std::string> id = s.variable(h, "NCCL_HOSTID"); id && !id->empty()) by_id[*id].push_back(h);
  for (const auto& [id, hosts] : by_id) {
    if (hosts.size() < 2 || s.hosts[hosts[0]].facts.machine.boot_id == s.hosts[hosts[1]].facts.machine.boot_id) continue;
    findings.on(
        hosts,
        {fmt::format("NCCL_HOSTID is {} on {} hosts", id, hosts.size()), fmt::format("{} 台机器的 NCCL_HOSTID 都是 {}", hosts.size(), id)},
        "unset NCCL_HOSTID");
  }
}

void master_unknown(const Situation& s, Findings& findings) {
  const std::string& name = s.job.master_address;
  if (name.empty() || is_numeric(name)) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::Resolved* r = s.hosts[h].probed ? resolved(s.hosts[h], name) : nullptr;
    if (!r || !r->addresses.empty() || r->error.empty()) continue;
    findings.on(h, {fmt::format("{}: {}", name, r->error), fmt::format("{}：{}", name, r->error)},
                "getent hosts " + base::shell_quote(name));
  }
}

void name_unknown(const Situation& s, Findings& findings) {
  if (!several(s)) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<std::string> unknown;
    for (const host::Resolved& r : s.hosts[h].facts.network.names)
      if (r.addresses.empty() && !r.error.empty() && r.name != s.job.master_address) unknown.push_back(r.name);
    if (!s.hosts[h].probed || unknown.empty()) continue;
    findings.on(h, {fmt::format("cannot resolve {}", list(unknown)), fmt::format("无法解析 {}", list(unknown))},
                "getent hosts " + base::shell_quote(unknown[0]));
  }
}

// What a host says another's name stands for must be an address of that other.
void name_stale(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].probed) continue;
    for (size_t other = 0; other < s.hosts.size(); ++other) {
      const HostView& peer = s.hosts[other];
      const host::Resolved* r = resolved(s.hosts[h], peer.name);
      if (h == other || !peer.probed || !r || r->addresses.empty() || peer.facts.network.interfaces.empty()) continue;
      if (std::any_of(r->addresses.begin(), r->addresses.end(), [&](const std::string& a) { return has_address(peer, a); })) continue;
      std::string own = peer.address.empty() ? "" : peer.address;
      findings.on(h,
                  {fmt::format("{} is {} here, an address that {} does not have{}", peer.name, list(r->addresses), peer.name,
                               own.empty() ? "" : " (it has " + own + ")"),
                   fmt::format("{} 在这里解析为 {}，但 {} 没有这个地址{}", peer.name, list(r->addresses), peer.name,
                               own.empty() ? "" : "（它的地址是 " + own + "）")},
                  "getent hosts " + base::shell_quote(peer.name));
    }
  }
}

void names_disagree(const Situation& s, Findings& findings) {
  const std::string& name = s.job.master_address;
  if (name.empty() || is_numeric(name)) return;
  std::map<std::vector<std::string>, std::vector<size_t>> by_answer;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::Resolved* r = s.hosts[h].probed ? resolved(s.hosts[h], name) : nullptr;
    if (!r || r->addresses.empty() || std::all_of(r->addresses.begin(), r->addresses.end(), is_loopback)) continue;
    std::vector<std::string> sorted = r->addresses;
    std::sort(sorted.begin(), sorted.end());
    by_answer[sorted].push_back(h);
  }
  if (by_answer.size() < 2) return;
  // Different addresses of one machine are all right: split names of a host with several networks.
  for (const HostView& h : s.hosts)
    if (h.probed && std::all_of(by_answer.begin(), by_answer.end(), [&](const auto& answer) { return has_address(h, answer.first[0]); }))
      return;
  auto usual =
      std::max_element(by_answer.begin(), by_answer.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  for (const auto& [addresses, hosts] : by_answer) {
    if (addresses == usual->first) continue;
    findings.on(hosts,
                {fmt::format("{} is {} here, {} elsewhere", name, list(addresses), list(usual->first)),
                 fmt::format("{} 在这里是 {}，在其他机器上是 {}", name, list(addresses), list(usual->first))},
                "getent hosts " + base::shell_quote(name));
  }
}

constexpr Row kNameRows[] = {
    {"RDZV-NAME-LOOPBACK",
     Severity::kWarning,
     Group::kRendezvous,
     {"a host's own name leads to itself only", "本机名解析到回环地址"},
     {"Does every host's own name resolve to an address that others can reach?", "每台机器的主机名是否解析到其他机器可达的地址？"},
     {"Debian and Ubuntu write 127.0.1.1 with the own name into /etc/hosts. Gloo, which PyTorch uses for CPU groups and barriers, "
      "announces the address "
      "of its own name: \"Gloo connectFullMesh failed with […] remote=[127.0.1.1]:60817: Connection refused\". As MASTER_ADDR the name "
      "leads rank 0 "
      "to 127.0.1.1, where nobody else comes.",
      "Debian、Ubuntu 会在 /etc/hosts 里把本机名写成 127.0.1.1。Gloo（PyTorch 用于 CPU 进程组和 barrier）会公布本机名对应的地址："
      "\"Gloo connectFullMesh failed with […] remote=[127.0.1.1]:60817: Connection refused\"。若用它作 MASTER_ADDR，rank 0 会在 127.0.1.1 "
      "上监听，"
      "别人连不到。"},
     {"Name the interface, or give the name its real address:\n$ export GLOO_SOCKET_IFNAME=<interface>\n$ sudo sed -i "
      "\"s/^127.0.1.1.*/<address> $(hostname)/\" /etc/hosts",
      "指定网卡，或把本机名写成真实地址：\n$ export GLOO_SOCKET_IFNAME=<interface>\n$ sudo sed -i \"s/^127.0.1.1.*/<address> "
      "$(hostname)/\" /etc/hosts"},
     "pytorch/gloo issue 223; torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
     name_loopback},
    {"RDZV-DUPLICATE-HOSTNAME",
     Severity::kWarning,
     Group::kRendezvous,
     {"two hosts have one name", "两台机器主机名相同"},
     {"Does every host call itself differently?", "各机器的主机名是否互不相同？"},
     {"Programs that tell hosts apart by name take them for one: DeepSpeed and Lightning count local ranks wrongly, logs and checkpoints "
      "named after "
      "the host overwrite each other.",
      "以主机名区分机器的程序会把它们当成一台：DeepSpeed、Lightning 会算错本地 rank，以主机名命名的日志和 checkpoint 会互相覆盖。"},
     {"Give one of them another name:\n$ sudo hostname <name>", "给其中一台改名：\n$ sudo hostname <name>"},
     "",
     duplicate_hostname},
    {"RDZV-SAME-MACHINE",
     Severity::kWarning,
     Group::kRendezvous,
     {"one machine is listed twice", "同一台机器被列了两次"},
     {"Is every host of the list another machine?", "主机列表中的每一项是否是不同的机器？"},
     {"Its GPUs and CPUs are given out twice: \"Duplicate GPU detected : rank 0 and rank 8 both on CUDA device 34000\", or out of memory.",
      "它的 GPU 和 CPU 会被分配两次：\"Duplicate GPU detected : rank 0 and rank 8 both on CUDA device 34000\"，或者显存不足。"},
     {"Take one of the two out of the list.", "从列表中去掉其中一个。"},
     "NCCL src/init.cc",
     same_machine_twice},
    {"RDZV-MACHINE-ID",
     Severity::kNote,
     Group::kRendezvous,
     {"machines are clones with one machine id", "克隆的机器 machine-id 相同"},
     {"Does every machine have its own /etc/machine-id?", "每台机器的 /etc/machine-id 是否各不相同？"},
     {"Machines copied from one image share it. DHCP servers that go by it give both one address, which then answers now here, now there.",
      "由同一镜像克隆的机器会共用它。按它分配地址的 DHCP 服务器会给两台机器同一个地址，结果一会儿连到这台，一会儿连到那台。"},
     {"Make a new one and restart:\n$ sudo rm /etc/machine-id && sudo systemd-machine-id-setup",
      "重新生成并重启：\n$ sudo rm /etc/machine-id && sudo systemd-machine-id-setup"},
     "machine-id(5)",
     machine_id},
    {"RDZV-HOSTID",
     Severity::kError,
     Group::kRendezvous,
     {"NCCL is told that several hosts are one", "NCCL_HOSTID 让 NCCL 把多台机器当成一台"},
     {"Is NCCL_HOSTID different on every host?", "NCCL_HOSTID 在各机器上是否不同？"},
     {"NCCL connects ranks with one host id through shared memory and CUDA IPC. Between machines neither exists: \"Duplicate GPU "
      "detected\", \"Error while "
      "attaching to shared memory segment\", or a hang.",
      "NCCL 会让 host id 相同的 rank 走共享内存和 CUDA IPC，而机器之间没有这些：\"Duplicate GPU detected\"、\"Error while attaching to "
      "shared memory "
      "segment\"，或直接卡住。"},
     {"Leave it out: NCCL tells hosts apart by name and boot id:\n$ unset NCCL_HOSTID",
      "不要设置，NCCL 会用主机名和 boot id 区分机器：\n$ unset NCCL_HOSTID"},
     "NCCL src/misc/utils.cc (getHostHash)",
     host_id},
    {"RDZV-MASTER-UNKNOWN",
     Severity::kError,
     Group::kRendezvous,
     {"the master's name is unknown on a host", "某台机器无法解析主节点名"},
     {"Can every host resolve MASTER_ADDR?", "每台机器能否解析 MASTER_ADDR？"},
     {"\"The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\" on this host's "
      "ranks; the others "
      "wait.",
      "这台机器的 rank 报 \"The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -2 - Name or service not "
      "known).\"，"
      "其他 rank 只能等待。"},
     {"Use the address instead of the name, or add it to /etc/hosts:\n$ getent hosts <host>\n$ echo '<address> <host>' | sudo tee -a "
      "/etc/hosts",
      "用 IP 地址代替名字，或写入 /etc/hosts：\n$ getent hosts <host>\n$ echo '<address> <host>' | sudo tee -a /etc/hosts"},
     "torch/csrc/distributed/c10d/socket.cpp",
     master_unknown},
    {"RDZV-NAME-UNKNOWN",
     Severity::kNote,
     Group::kRendezvous,
     {"a host cannot resolve another's name", "某台机器无法解析其他机器的名字"},
     {"Can every host resolve the names of the others?", "各机器能否解析彼此的名字？"},
     {"Ranks are given addresses, so that this launcher does not need it. Programs that use names themselves (MPI, Ray, DeepSpeed's own "
      "launcher) fail: "
      "\"Temporary failure in name resolution\".",
      "rank 得到的是地址，本启动器不依赖名字解析。但自己使用主机名的程序（MPI、Ray、DeepSpeed 自带启动器）会报 "
      "\"Temporary failure in name resolution\"。"},
     {"Add them to /etc/hosts:\n$ getent hosts <host>", "写入 /etc/hosts：\n$ getent hosts <host>"},
     "",
     name_unknown},
    {"RDZV-NAME-STALE",
     Severity::kWarning,
     Group::kRendezvous,
     {"a host knows another by a wrong address", "某台机器记录的对端地址是错的"},
     {"Is what each host resolves another's name to an address of that host?", "各机器解析到的对端地址是否真的属于对端？"},
     {"An old line in /etc/hosts or an old DNS record. What uses the name there talks to nobody, or to somebody else.",
      "/etc/hosts 里的旧条目或过期的 DNS 记录。在那里使用该名字的程序会连不上，或连到别的机器。"},
     {"Correct it:\n$ getent hosts <host>\n$ grep <host> /etc/hosts", "改正：\n$ getent hosts <host>\n$ grep <host> /etc/hosts"},
     "hosts(5)",
     name_stale},
    {"RDZV-NAMES-DISAGREE",
     Severity::kWarning,
     Group::kRendezvous,
     {"the master's name means different machines", "主节点名在不同机器上指向不同地址"},
     {"Does MASTER_ADDR resolve to the same machine everywhere?", "MASTER_ADDR 在各机器上是否解析到同一台机器？"},
     {"Some ranks connect to one machine, the others to another: \"Timed out after 1801 seconds waiting for clients. 1/2 clients joined.\"",
      "一部分 rank 连到这台，另一部分连到那台：\"Timed out after 1801 seconds waiting for clients. 1/2 clients joined.\""},
     {"Use the address instead of the name, or make /etc/hosts the same:\n$ getent hosts <host>",
      "用 IP 地址代替名字，或统一 /etc/hosts：\n$ getent hosts <host>"},
     "torch/csrc/distributed/c10d/TCPStore.cpp",
     names_disagree},
};

}  // namespace

std::span<const Row> name_rows() { return kNameRows; }

}  // namespace doctor
