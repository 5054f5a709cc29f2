// What the user wrote into NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and NCCL_SOCKET_FAMILY, host by host.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/network_rows.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

// Interfaces with an address, as a person would look for them.
std::string present(const HostView& view) {
  std::string text;
  for (const host::Interface& i : view.facts.network.interfaces)
    if (!i.loopback && !i.addresses.empty()) text += (text.empty() ? "" : ", ") + i.name;
  return text;
}

struct Named {
  std::string variable, value;
  bool used = false;  // by this job, certainly
};

// The variables that lead to no interface on that host.
std::vector<Named> missing_on(const Situation& s, size_t h) {
  std::vector<Named> all;
  if (s.hosts[h].facts.network.interfaces.empty()) return all;
  std::string nccl = job_setting(s, h, "NCCL_SOCKET_IFNAME");
  std::optional<host::SocketChoice> choice = nccl_choice_of(s, h);
  if (nccl.size() > 1 && choice && choice->interface.empty())
    all.push_back({"NCCL_SOCKET_IFNAME", nccl, uses_nccl(s, h) || set_for_job(s, "NCCL_SOCKET_IFNAME")});
  std::string gloo = job_setting(s, h, "GLOO_SOCKET_IFNAME");
  choice = gloo_choice_of(s, h);
  if (!gloo.empty() && choice && choice->interface.empty())
    all.push_back({"GLOO_SOCKET_IFNAME", gloo, uses_gloo(s, h) || set_for_job(s, "GLOO_SOCKET_IFNAME")});
  return all;
}

void missing(const Situation& s, Findings& findings, bool used) {
  for (size_t h : probed(s))
    for (const Named& n : missing_on(s, h)) {
      if (n.used != used) continue;
      const HostView& view = s.hosts[h];
      std::string here = present(view);
      const host::Interface* chosen = chosen_interface(view);
      std::string better = chosen && !chosen->loopback ? chosen->name : "";
      findings.on(
          h,
          {fmt::format("{}={} matches no usable interface here; there are {}", n.variable, n.value, here),
           fmt::format("{}={} 在本机没有匹配到可用网卡；本机有 {}", n.variable, n.value, here)},
          better.empty() ? "unset " + n.variable : fmt::format("export {}={}{}", n.variable, n.variable[0] == 'N' ? "=" : "", better));
    }
}
void missing_used(const Situation& s, Findings& f) { missing(s, f, true); }
void missing_unused(const Situation& s, Findings& f) { missing(s, f, false); }

// "eth0" without "=" also takes eth01: only where the exact one exists, else a prefix was meant.
void prefix(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string value = job_setting(s, h, "NCCL_SOCKET_IFNAME");
    if (value.size() < 2 || value[0] == '^' || value[0] == '=') continue;
    std::vector<host::ListedAddress> listed = host::listed_addresses(s.hosts[h].facts.network.interfaces);
    for (std::string_view word : base::split(value, ',')) {
      bool exact = false;
      std::string others;
      for (const host::ListedAddress& a : listed) {
        if (a.name == word) exact = true;
        else if (!word.empty() && !a.v6 && a.interface != word && a.name.substr(0, word.size()) == word)
          others += fmt::format("{}{} {}/{}", others.empty() ? "" : ", ", a.name, a.address, a.prefix);
      }
      if (!exact || others.empty()) continue;
      findings.on(h,
                  {fmt::format("NCCL_SOCKET_IFNAME={} also takes {}", value, others),
                   fmt::format("NCCL_SOCKET_IFNAME={} 还会匹配 {}", value, others)},
                  "export NCCL_SOCKET_IFNAME==" + value);
    }
  }
}

void needless(const Situation& s, Findings& findings) {
  std::vector<size_t> hosts;
  std::string value;
  for (size_t h : probed(s)) {
    host::NcclSettings settings = nccl_settings_of(s, h);
    std::optional<host::SocketChoice> with = nccl_choice_of(s, h);
    if (settings.ifname.size() < 2 || !with || with->interface.empty()) return;
    value = settings.ifname;
    settings.ifname.clear();
    if (host::nccl_choice(s.hosts[h].facts.network.interfaces, settings).address != with->address) return;
    hosts.push_back(h);
  }
  if (hosts.empty()) return;
  findings.on(hosts, {fmt::format("NCCL_SOCKET_IFNAME={}: NCCL would take the same address without it", value),
                      fmt::format("NCCL_SOCKET_IFNAME={}：不设置时 NCCL 也会选用同一地址", value)});
}

void blanks(const Situation& s, Findings& findings) {
  for (size_t h : probed(s))
    for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
      std::string value = job_setting(s, h, name);
      if (value.find_first_of(" \t\"'") == std::string::npos) continue;
      std::string clean = value;
      std::erase_if(clean, [](char c) { return base::is_blank(c) || c == '"' || c == '\''; });
      findings.on(
          h, {fmt::format("{}=\"{}\" has blanks or quotes in it", name, value), fmt::format("{}=\"{}\" 中含有空格或引号", name, value)},
          fmt::format("export {}={}", name, clean));
    }
}

void gloo_syntax(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string value = job_setting(s, h, "GLOO_SOCKET_IFNAME");
    bool pattern = !value.empty() && (value[0] == '^' || value[0] == '=');
    const host::Interface* chosen = chosen_interface(s.hosts[h]);
    if (pattern)
      findings.on(
          h, {"GLOO_SOCKET_IFNAME=" + value + ": Gloo takes whole names only", "GLOO_SOCKET_IFNAME=" + value + "：Gloo 只接受完整网卡名"},
          chosen && !chosen->loopback ? "export GLOO_SOCKET_IFNAME=" + chosen->name : "unset GLOO_SOCKET_IFNAME");
  }
}

void family(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string value = job_setting(s, h, "NCCL_SOCKET_FAMILY");
    if (value.empty() || value == "AF_INET" || value == "AF_INET6") continue;
    std::string meant = value.find('6') != std::string::npos ? "AF_INET6" : "AF_INET";
    findings.on(h,
                {fmt::format("NCCL_SOCKET_FAMILY={} is not one of AF_INET, AF_INET6; NCCL passes over it in silence", value),
                 fmt::format("NCCL_SOCKET_FAMILY={} 不是 AF_INET 或 AF_INET6，NCCL 会静默忽略", value)},
                "export NCCL_SOCKET_FAMILY=" + meant);
  }
}

constexpr Row kNetworkIfnameRows[] = {
    {"NET-IFNAME-MISSING",
     Severity::kError,
     Group::kNetwork,
     {"a named interface does not exist on a host", "指定的网卡在某台主机上不存在"},
     {"Does each name in NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME stand for an interface with an address, on every host?",
      "NCCL_SOCKET_IFNAME、GLOO_SOCKET_IFNAME 中的名字在每台主机上是否都对应有地址的网卡？"},
     {"NCCL ends with \"Bootstrap : no socket interface found\" (or \"NET/Socket : no interface found\", \"NET/IB : No IP interface "
      "found.\"), Gloo with "
      "\"Unable to find address for: eth0\".\nThe variable has no default \"eth0\", as some notes say: unset, NCCL takes ib*, then the "
      "first that is "
      "not docker or lo. On current distributions the cards are called eno1, ens5, enp3s0 or bond0, and often differ between machines.",
      "NCCL 报 “Bootstrap : no socket interface found”（或 “NET/Socket : no interface found”、“NET/IB : No IP interface found.”），Gloo 报 "
      "“Unable to find "
      "address for: eth0”。\n该变量并没有“默认 eth0”这回事（不少笔记这样写）：不设置时 NCCL 先选 ib*，再选第一个不是 docker、lo "
      "的网卡。如今的发行版网卡多叫 "
      "eno1、ens5、enp3s0、bond0，且各机器往往不同。"},
     {"Leave it to phalanx run, which sets it per host, or name what is there:\n$ unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME\n$ ip -br "
      "address",
      "交给 phalanx run 按主机设置，或改成实际存在的网卡：\n$ unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME\n$ ip -br address"},
     "nccl src/bootstrap.cc, src/misc/socket.cc; gloo/transport/tcp/device.cc",
     missing_used},
    {"NET-IFNAME-STRAY",
     Severity::kNote,
     Group::kNetwork,
     {"a host's environment names an interface it does not have", "主机环境变量中指定了不存在的网卡"},
     {"Do the host's own NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME fit its interfaces?",
      "主机自身的 NCCL_SOCKET_IFNAME、GLOO_SOCKET_IFNAME 与网卡是否相符？"},
     {"It is in the environment or the NCCL configuration file of the host, not set for this job, and this job does not seem to use the "
      "library. A job "
      "that does will fail with \"no socket interface found\" or \"Unable to find address for\".",
      "该变量来自主机环境或 NCCL 配置文件，并非为本任务设置，而且本任务似乎不使用对应的库。用到它的任务会报 “no socket interface found” 或 "
      "“Unable to find address for”。"},
     {"Remove it from ~/.bashrc, /etc/environment or /etc/nccl.conf:\n$ grep -rn SOCKET_IFNAME ~/.bashrc ~/.profile /etc/environment "
      "/etc/nccl.conf",
      "从 ~/.bashrc、/etc/environment 或 /etc/nccl.conf 中删除：\n$ grep -rn SOCKET_IFNAME ~/.bashrc ~/.profile /etc/environment "
      "/etc/nccl.conf"},
     "",
     missing_unused},
    {"NET-IFNAME-PREFIX",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL_SOCKET_IFNAME is a prefix and takes more than meant", "NCCL_SOCKET_IFNAME 按前缀匹配，多选了网卡"},
     {"Does each name in NCCL_SOCKET_IFNAME take exactly one interface?", "NCCL_SOCKET_IFNAME 中每个名字是否只匹配一块网卡？"},
     {"NCCL compares prefixes: eth0 also takes eth01 and eth0.100, ens1 also ens1f0. The bootstrap uses the first in the kernel's order "
      "and NET/Socket all of "
      "them, so that ranks may try networks on which the others are not.",
      "NCCL 按前缀比较：eth0 也会匹配 eth01 和 eth0.100，ens1 也会匹配 ens1f0。bootstrap 用内核顺序中的第一块，NET/Socket 则全部使用，rank "
      "可能去连别的主机并不在的网络。"},
     {"Put \"=\" before the name to mean exactly it:\n$ export NCCL_SOCKET_IFNAME==<interface>",
      "在名字前加 “=” 表示完全匹配：\n$ export NCCL_SOCKET_IFNAME==<interface>"},
     "NCCL user guide, NCCL_SOCKET_IFNAME; nccl src/misc/utils.cc matchIf",
     prefix},
    {"NET-IFNAME-NEEDLESS",
     Severity::kNote,
     Group::kNetwork,
     {"NCCL_SOCKET_IFNAME says what NCCL does anyway", "NCCL_SOCKET_IFNAME 与 NCCL 的默认选择相同"},
     {"Would NCCL take another interface without NCCL_SOCKET_IFNAME?", "不设置 NCCL_SOCKET_IFNAME 时 NCCL 会选别的网卡吗？"},
     {"The default is not \"eth0\": NCCL takes the first interface whose name begins with ib, else the one in the subnet of NCCL_COMM_ID, "
      "else the first "
      "that is not docker or lo. Here that is the same one. The setting does no harm today, and breaks the job on the next machine whose "
      "card has "
      "another name.",
      "NCCL 的默认值并不是 “eth0”：先选名字以 ib 开头的第一块网卡，再选与 NCCL_COMM_ID 同网段的，再选第一块不是 docker、lo "
      "的。这里结果相同。该设置现在没有坏处，"
      "但换到网卡名不同的机器上任务就会失败。"},
     {"$ unset NCCL_SOCKET_IFNAME", "$ unset NCCL_SOCKET_IFNAME"},
     "nccl src/misc/socket.cc ncclFindInterfaces",
     needless},
    {"NET-IFNAME-BLANK",
     Severity::kWarning,
     Group::kNetwork,
     {"an interface list has blanks or quotes in it", "网卡列表中含有空格或引号"},
     {"Are *_SOCKET_IFNAME lists written without blanks and quotes?", "*_SOCKET_IFNAME 列表中是否没有空格和引号？"},
     {"Neither NCCL nor Gloo trims: in \"eth0, eth1\" the second name is \" eth1\" and never matches. Quotes in an env file, a docker "
      "--env-file or a conf "
      "file become part of the value.",
      "NCCL 和 Gloo 都不去除空格：“eth0, eth1” 的第二个名字是 “ eth1”，永远匹配不到。env 文件、docker --env-file 或 conf "
      "文件中的引号会成为值的一部分。"},
     {"$ export NCCL_SOCKET_IFNAME=<interface>,<interface>", "$ export NCCL_SOCKET_IFNAME=<interface>,<interface>"},
     "nccl src/misc/utils.cc parseStringList",
     blanks},
    {"NET-GLOO-SYNTAX",
     Severity::kWarning,
     Group::kNetwork,
     {"GLOO_SOCKET_IFNAME is written in NCCL's syntax", "GLOO_SOCKET_IFNAME 使用了 NCCL 的语法"},
     {"Is GLOO_SOCKET_IFNAME a list of whole interface names?", "GLOO_SOCKET_IFNAME 是否为完整网卡名的列表？"},
     {"\"^docker0\" (all but) and \"=eth0\" (exactly) are NCCL's. Gloo looks for an interface of that very name and ends with \"Unable to "
      "find address for: "
      "^docker0\".",
      "“^docker0”（排除）和 “=eth0”（完全匹配）是 NCCL 的语法。Gloo 会去找名字恰好如此的网卡，报 “Unable to find address for: ^docker0”。"},
     {"$ export GLOO_SOCKET_IFNAME=<interface>", "$ export GLOO_SOCKET_IFNAME=<interface>"},
     "gloo/transport/tcp/device.cc lookupAddrForIface",
     gloo_syntax},
    {"NET-FAMILY",
     Severity::kWarning,
     Group::kNetwork,
     {"NCCL_SOCKET_FAMILY has a value NCCL does not know", "NCCL_SOCKET_FAMILY 的值 NCCL 不认识"},
     {"Is NCCL_SOCKET_FAMILY AF_INET or AF_INET6?", "NCCL_SOCKET_FAMILY 是否为 AF_INET 或 AF_INET6？"},
     {"NCCL compares with the two words AF_INET and AF_INET6, case and all; anything else (ipv4, inet, 4) is passed over in silence, and "
      "both families are "
      "taken as before.",
      "NCCL 只与 AF_INET、AF_INET6 两个词做区分大小写的比较；其他写法（ipv4、inet、4）会被静默忽略，仍按两种地址族处理。"},
     {"$ export NCCL_SOCKET_FAMILY=AF_INET", "$ export NCCL_SOCKET_FAMILY=AF_INET"},
     "nccl src/misc/socket.cc envSocketFamily",
     family},
};

}  // namespace

std::span<const Row> network_ifname_rows() { return kNetworkIfnameRows; }

}  // namespace doctor
