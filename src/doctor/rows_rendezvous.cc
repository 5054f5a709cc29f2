// Where the ranks meet: MASTER_ADDR and MASTER_PORT.
#include "doctor/rows_rendezvous.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/address_words.h"
#include "doctor/random_port.h"

namespace doctor {
namespace {

bool several(const Situation& s) { return s.hosts.size() > 1; }

std::string kill_command(const host::PortOwner& owner, const std::string& user) {
  if (owner.pid <= 0) return "";
  return fmt::format("{}kill {}", owner.user == user || user == "root" ? "" : "sudo ", owner.pid);
}

void port_taken(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || s.job.master_port == 0) return;
  const HostView& host = s.hosts[*at];
  for (const host::PortOwner& owner : host.facts.processes.ports) {
    if (owner.port != s.job.master_port) continue;
    if (owner.pid == 0) {
      findings.on(*at,
                  {fmt::format("{} is taken by a process of {} that cannot be seen from here", owner.port, owner.user),
                   fmt::format("{} 被用户 {} 的进程占用，从这里看不到是哪个进程", owner.port, owner.user)},
                  fmt::format("sudo ss -ltnp 'sport = :{}'", owner.port));
      continue;
    }
    std::string age = base::format_duration(std::chrono::seconds(owner.age_s));
    bool orphan = owner.parent == 1;
    findings.on(*at,
                {fmt::format("{} is taken by pid {} of {}, {} old, parent {}{}: {}", owner.port, owner.pid, owner.user, age, owner.parent,
                             orphan ? " (its launcher is gone)" : "", owner.command),
                 fmt::format("{} 被 pid {} 占用（用户 {}，已运行 {}，父进程 {}{}）：{}", owner.port, owner.pid, owner.user, age,
                             owner.parent, orphan ? "，启动它的进程已不在" : "", owner.command)},
                orphan ? kill_command(owner, host.facts.machine.user) : fmt::format("ps -o pid,ppid,user,etime,args -p {}", owner.pid));
  }
}

void master_loopback(const Situation& s, Findings& findings) {
  if (!several(s) || s.job.master_address.empty()) return;
  const std::string& asked = s.job.master_address;
  if (is_loopback(asked)) {
    findings.job({fmt::format("MASTER_ADDR is {}, and there are {} hosts", asked, s.hosts.size()),
                  fmt::format("MASTER_ADDR 为 {}，而任务有 {} 台机器", asked, s.hosts.size())});
    return;
  }
  // A name that the first host's own /etc/hosts sends to 127.0.1.1 is right elsewhere: only a host that is not the store's is lost.
  std::optional<size_t> store = store_host(s);
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::Resolved* r = resolved(s.hosts[h], asked);
    if (!r || r->addresses.empty() || h == store || !std::all_of(r->addresses.begin(), r->addresses.end(), is_loopback)) continue;
    findings.on(h, {fmt::format("{} is {} here", asked, r->addresses[0]), fmt::format("{} 在这里解析为 {}", asked, r->addresses[0])});
  }
}

// All addresses that the first host says MASTER_ADDR has.
std::vector<std::string> master_addresses(const Situation& s) {
  if (s.job.master_address.empty() || s.hosts.empty()) return {};
  if (is_numeric(s.job.master_address)) return {s.job.master_address};
  const host::Resolved* r = resolved(s.hosts[0], s.job.master_address);
  return r ? r->addresses : std::vector<std::string>{};
}

bool has_any(const HostView& h, const std::vector<std::string>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [&](const std::string& a) { return !is_loopback(a) && has_address(h, a); });
}

void master_other(const Situation& s, Findings& findings) {
  std::vector<std::string> addresses = master_addresses(s);
  if (!several(s) || addresses.empty() || !s.hosts[0].probed || has_any(s.hosts[0], addresses) || !s.job.serves_store) return;
  for (size_t h = 1; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && has_any(s.hosts[h], addresses))
      findings.on(h, {fmt::format("MASTER_ADDR {} is this host's; rank 0 runs on {}", s.job.master_address, s.hosts[0].name),
                      fmt::format("MASTER_ADDR {} 是这台机器的地址；而 rank 0 在 {} 上", s.job.master_address, s.hosts[0].name)});
}

void master_not_rank0(const Situation& s, Findings& findings) {
  std::vector<std::string> addresses = master_addresses(s);
  if (!several(s) || addresses.empty() || !s.hosts[0].probed || s.hosts[0].facts.network.interfaces.empty()) return;
  if (std::all_of(addresses.begin(), addresses.end(), is_loopback)) return;
  for (const HostView& h : s.hosts)
    if (!h.probed || has_any(h, addresses)) return;
  std::string own;
  for (const host::Interface& i : s.hosts[0].facts.network.interfaces)
    for (const host::InterfaceAddressFact& a : i.addresses)
      if (!i.loopback && !a.v6) own += (own.empty() ? "" : ", ") + a.address;
  findings.on(0, {fmt::format("MASTER_ADDR {} is on none of the hosts; this one has {}", s.job.master_address, own),
                  fmt::format("MASTER_ADDR {} 不属于任何一台机器；本机地址为 {}", s.job.master_address, own)});
}

// "8080,50000-50010" of ip_local_reserved_ports.
bool reserved(const std::string& list, int port) {
  for (std::string_view part : base::split(list, ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> low = base::parse_int(base::trim(part.substr(0, dash)), 0, 65535);
    base::Result<int64_t> high = dash == std::string_view::npos ? low : base::parse_int(base::trim(part.substr(dash + 1)), 0, 65535);
    if (low.ok() && high.ok() && port >= *low && port <= *high) return true;
  }
  return false;
}

void port_ephemeral(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || s.job.master_port == 0) return;
  const host::NetworkFacts& n = s.hosts[*at].facts.network;
  int port = s.job.master_port;
  if (n.port_range_high == 0 || port < n.port_range_low || port > n.port_range_high || reserved(n.reserved_ports, port)) return;
  findings.on(*at,
              {fmt::format("{} lies in {}–{}, from which the kernel takes ports for outgoing connections", port, n.port_range_low,
                           n.port_range_high),
               fmt::format("{} 落在 {}–{} 之内，内核会从中为外发连接分配端口", port, n.port_range_low, n.port_range_high)},
              fmt::format("sudo sysctl net.ipv4.ip_local_reserved_ports={}", port));
}

void port_random(const Situation& s, Findings& findings) {
  std::set<std::string> told;
  for (const HostView& h : s.hosts) {
    if (!h.probed) continue;
    for (const host::CommandFile& file : h.facts.command.files) {
      std::optional<RandomPort> port = random_port(file.text);
      if (!port || !told.insert(file.path).second) continue;
      const host::NetworkFacts& n = h.facts.network;
      bool inside = n.port_range_high > 0 && port->low <= n.port_range_high && port->high >= n.port_range_low;
      if (!inside && !several(s)) continue;
      Words range = inside ? Words{fmt::format("; the kernel lends {}–{} to outgoing connections", n.port_range_low, n.port_range_high),
                                   fmt::format("；内核会把 {}–{} 分给外发连接", n.port_range_low, n.port_range_high)}
                           : Words{};
      Words each = several(s) ? Words{"; each host draws its own", "；每台机器抽到的还不一样"} : Words{};
      findings.job({fmt::format("{}:{}: {} is a port from {} to {}{}{}", file.path, port->line, port->text, port->low, port->high,
                                range.english, each.english),
                    fmt::format("{}:{}：{} 会得到 {} 到 {} 的端口{}{}", file.path, port->line, port->text, port->low, port->high,
                                range.chinese, each.chinese)});
    }
  }
}

void init_localhost(const Situation& s, Findings& findings) {
  if (!several(s)) return;
  std::set<std::string> told;
  for (const HostView& h : s.hosts) {
    if (!h.probed) continue;
    for (const host::CommandFile& file : h.facts.command.files) {
      if (file.role != "script" && file.role != "shell") continue;
      int line_number = 0;
      for (std::string_view line : base::split_lines(file.text)) {
        ++line_number;
        std::string_view code = base::trim(line);
        if (code.empty() || code[0] == '#') continue;
        if (code.find("tcp://localhost") == std::string_view::npos && code.find("tcp://127.0.0.1") == std::string_view::npos) continue;
        if (told.insert(file.path).second)
          findings.job({fmt::format("{}:{}: {}", file.path, line_number, base::shell_quote(code.substr(0, 100))),
                        fmt::format("{}:{}：{}", file.path, line_number, base::shell_quote(code.substr(0, 100)))});
      }
    }
  }
}

void somaxconn(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || !s.hosts[*at].probed) return;
  int64_t backlog = s.hosts[*at].facts.network.somaxconn;
  if (backlog <= 0 || backlog >= s.job.world) return;
  findings.on(*at,
              {fmt::format("somaxconn is {}, {} ranks connect at once", backlog, s.job.world),
               fmt::format("somaxconn 为 {}，而 {} 个 rank 会同时连接", backlog, s.job.world)},
              "sudo sysctl net.core.somaxconn=4096");
}

void hand_set(const Situation& s, Findings& findings) {
  static constexpr std::string_view kOurs[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"};
  std::string names;
  for (const auto& [name, value] : s.job.set)
    if (std::find(std::begin(kOurs), std::end(kOurs), name) != std::end(kOurs))
      names += fmt::format("{}{}={}", names.empty() ? "" : " ", name, value);
  if (!names.empty()) findings.job({names + ": replaced for every rank", names + "：会被每个 rank 各自的值覆盖"});
}

constexpr Row kMeetingRows[] = {
    {"RDZV-PORT-TAKEN",
     Severity::kError,
     Group::kRendezvous,
     {"a port the job needs is taken", "任务需要的端口已被占用"},
     {"Is MASTER_PORT free on the host of rank 0?", "rank 0 所在机器上 MASTER_PORT 是否空闲？"},
     {"\"The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\" Another job, or the orphan of one that "
      "was killed, "
      "listens there.",
      "\"The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\" "
      "另一个任务、或被杀任务留下的孤儿进程正在监听。"},
     {"End the process if it is left over, or take another port (or none: a free one is chosen):\n$ ss -ltnp 'sport = :<port>'\n$ kill "
      "<pid>",
      "若是残留进程就结束它，否则换一个端口（或不指定，会自动挑选空闲端口）：\n$ ss -ltnp 'sport = :<port>'\n$ kill <pid>"},
     "torch/csrc/distributed/c10d/socket.cpp",
     port_taken},
    {"RDZV-MASTER-LOOPBACK",
     Severity::kError,
     Group::kRendezvous,
     {"the master address is a host's own", "主节点地址是回环地址"},
     {"Does MASTER_ADDR mean the same machine on every host?", "MASTER_ADDR 在每台机器上是否指向同一台机器？"},
     {"localhost and 127.0.0.1 are another machine on every machine. Ranks elsewhere ask themselves: \"The client socket has timed out "
      "after "
      "600000ms while trying to connect to (localhost, 29500)\", or \"Connection refused\". LLaMA-Factory's default is 127.0.0.1.",
      "localhost 和 127.0.0.1 在每台机器上都指自己，其他机器上的 rank 会去连自己：\"The client socket has timed out after 600000ms while "
      "trying to "
      "connect to (localhost, 29500)\" 或 \"Connection refused\"。LLaMA-Factory 的默认值就是 127.0.0.1。"},
     {"Leave it out (an address that all hosts reach is chosen), or give rank 0's real address:\n$ ip -br addr",
      "不要指定（会自动选择各机器都能到达的地址），或填写 rank 0 的真实地址：\n$ ip -br addr"},
     "LLaMA-Factory src/llamafactory/launcher.py",
     master_loopback},
    {"RDZV-MASTER-OTHER-HOST",
     Severity::kError,
     Group::kRendezvous,
     {"the master address is another host's", "主节点地址属于另一台机器"},
     {"Is MASTER_ADDR an address of the host of rank 0?", "MASTER_ADDR 是否为 rank 0 所在机器的地址？"},
     {"Rank 0 listens on its own host; all ranks ask another one: \"No socket on (host, port) is listening yet, will retry.\", then a "
      "timeout after "
      "10 to 30 minutes.",
      "rank 0 在自己的机器上监听，所有 rank 却去连另一台：先是 \"No socket on (host, port) is listening yet, will retry.\"，10～30 "
      "分钟后超时。"},
     {"Put that host first in the list, or leave the address out.", "把那台机器放到列表第一位，或不指定地址。"},
     "torch/csrc/distributed/c10d/socket.cpp",
     master_other},
    {"RDZV-MASTER-NOT-RANK0",
     Severity::kWarning,
     Group::kRendezvous,
     {"the master address is on none of the hosts", "主节点地址不属于任何一台机器"},
     {"Is MASTER_ADDR an address of the host of rank 0?", "MASTER_ADDR 是否为 rank 0 所在机器的地址？"},
     {"A mistyped or outdated address costs the whole timeout: \"The client socket has timed out after 600000ms while trying to connect to "
      "(h, p)\". An "
      "address that a router or cloud translates may be right.",
      "地址写错或已过时，会一直等到超时：\"The client socket has timed out after 600000ms while trying to connect to (h, p)\"。"
      "若地址由路由器或云平台做转换（NAT），则可能没有问题。"},
     {"Leave it out, or give an address of the first host:\n$ ip -br addr", "不要指定，或填写第一台机器的地址：\n$ ip -br addr"},
     "",
     master_not_rank0},
    {"RDZV-PORT-EPHEMERAL",
     Severity::kWarning,
     Group::kRendezvous,
     {"the master port can be lent to others", "主端口可能被外发连接占用"},
     {"Is MASTER_PORT outside ip_local_port_range?", "MASTER_PORT 是否在 ip_local_port_range 之外？"},
     {"The kernel gives outgoing connections ports from this range (32768–60999 unless changed). One day one of them has yours: \"Address "
      "already in "
      "use\", now and then, on one machine. 29500 lies outside, 54000 inside.",
      "内核为外发连接从这个范围分配端口（默认 32768–60999）。总有一天某个连接正好占了它：偶尔、在某一台机器上报 \"Address already in "
      "use\"。"
      "29500 在范围之外，54000 在范围之内。"},
     {"Take a port below 32768, or reserve it:\n$ cat /proc/sys/net/ipv4/ip_local_port_range\n$ sudo sysctl "
      "net.ipv4.ip_local_reserved_ports=<port>",
      "改用 32768 以下的端口，或把它保留下来：\n$ cat /proc/sys/net/ipv4/ip_local_port_range\n$ sudo sysctl "
      "net.ipv4.ip_local_reserved_ports=<port>"},
     "ip(7): ip_local_port_range; field note 1",
     port_ephemeral},
    {"RDZV-PORT-RANDOM",
     Severity::kWarning,
     Group::kRendezvous,
     {"the program draws its port by lot", "程序随机选择端口"},
     {"Does the program take its port from a random number?", "程序是否用随机数决定端口？"},
     {"54000 + random.randint(0, 888) is 54000 to 54888, all of it in the range that the kernel lends to outgoing connections: \"Address "
      "already in use\" "
      "now and then. On several hosts each draws another port, and they never meet.",
      "54000 + random.randint(0, 888) 得到 54000～54888，全部落在内核分给外发连接的范围里，偶尔会报 \"Address already in use\"。"
      "多机时每台机器抽到不同的端口，永远无法会合。"},
     {"Use MASTER_PORT, which every rank is given: init_process_group(init_method=\"env://\").",
      "使用每个 rank 都会得到的 MASTER_PORT：init_process_group(init_method=\"env://\")。"},
     "field note 1",
     port_random},
    {"RDZV-INIT-LOCALHOST",
     Severity::kWarning,
     Group::kRendezvous,
     {"the program meets at localhost", "程序在 localhost 会合"},
     {"Does the program name tcp://localhost as its meeting point?", "程序是否写死了 tcp://localhost 作为会合点？"},
     {"Each host's ranks meet among themselves and wait for the others until the timeout, whatever MASTER_ADDR says.",
      "每台机器的 rank 只在本机会合，等其他机器直到超时，MASTER_ADDR 设成什么都没用。"},
     {"Let it use what the launcher gives: init_process_group(init_method=\"env://\").",
      "改为使用启动器给出的地址：init_process_group(init_method=\"env://\")。"},
     "field note 1",
     init_localhost},
    {"RDZV-SOMAXCONN",
     Severity::kWarning,
     Group::kRendezvous,
     {"the accept queue is shorter than the job", "监听队列短于 rank 数"},
     {"Is somaxconn at least the number of ranks?", "somaxconn 是否不小于 rank 数？"},
     {"All ranks connect to the store at once. \"Starting store with N workers but somaxconn is M\": those beyond M are dropped, and try "
      "again after "
      "seconds, or time out.",
      "所有 rank 会同时连接 store。\"Starting store with N workers but somaxconn is M\"：超出 M 的连接被丢弃，几秒后重试，或者超时。"},
     {"Raise it on the host of rank 0:\n$ sudo sysctl net.core.somaxconn=4096",
      "在 rank 0 的机器上调高：\n$ sudo sysctl net.core.somaxconn=4096"},
     "torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp",
     somaxconn},
    {"RDZV-HAND-SET",
     Severity::kNote,
     Group::kRendezvous,
     {"a rank's variables are set by hand", "手动设置了 rank 变量"},
     {"Are RANK, WORLD_SIZE and their like left to the launcher?", "RANK、WORLD_SIZE 等变量是否交给启动器设置？"},
     {"These differ from rank to rank, so the launcher sets them, whatever was given. Under plain torchrun a left-over RANK=0 or "
      "WORLD_SIZE=2 makes two "
      "first ranks, or a job that waits for ranks that do not exist.",
      "这些变量每个 rank 都不同，由启动器设置，手动给的值会被覆盖。单独用 torchrun 时，残留的 RANK=0 或 WORLD_SIZE=2 会造成两个 rank 0，"
      "或一直等待并不存在的 rank。"},
     {"Leave them out:\n$ unset RANK LOCAL_RANK WORLD_SIZE NODE_RANK", "不要设置：\n$ unset RANK LOCAL_RANK WORLD_SIZE NODE_RANK"},
     "",
     hand_set},
};

}  // namespace

std::optional<size_t> store_host(const Situation& s) {
  if (s.hosts.empty()) return std::nullopt;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && has_any(s.hosts[h], master_addresses(s))) return h;
  return 0;
}

const host::Resolved* resolved(const HostView& host, const std::string& name) {
  for (const host::Resolved& r : host.facts.network.names)
    if (r.name == name) return &r;
  return nullptr;
}

std::span<const Row> meeting_rows() { return kMeetingRows; }

std::span<const Row> rendezvous_rows() {
  static const std::vector<Row> kAll = [] {
    std::vector<Row> all;
    for (auto* rows : {meeting_rows, name_rows})
      for (const Row& row : rows()) all.push_back(row);
    return all;
  }();
  return kAll;
}

}  // namespace doctor
