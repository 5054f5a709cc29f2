// What is switched off, and settings that contradict each other.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/nccl_variables.h"
#include "doctor/rows_nccl_parts.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

bool has_active_ib(const HostView& h) {
  for (const host::IbDevice& device : h.facts.infiniband.devices)
    for (const host::IbPort& port : device.ports)
      if (port.state == "ACTIVE") return true;
  return false;
}

bool net_is(const Situation& s, size_t host, std::string_view wanted) {
  return base::to_lower(setting(s, host, "NCCL_NET").value_or("")) == wanted;
}

void check_net_disabled(const Situation& s, Findings& findings) {
  if (!uses_nccl(s)) return;
  for (size_t host : probed(s)) {
    if (!net_is(s, host, "ib") || !is_on(s, host, "NCCL_IB_DISABLE")) continue;
    findings.on(host,
                {"NCCL_NET=IB asks for InfiniBand, NCCL_IB_DISABLE=1 switches it off",
                 "NCCL_NET=IB 要求使用 InfiniBand，NCCL_IB_DISABLE=1 又把它关掉"},
                away(s, host, "NCCL_IB_DISABLE"));
  }
}

// Pairs "at least A, at most B" turned round, and products that are cut.
void check_contradiction(const Situation& s, Findings& findings) {
  constexpr std::pair<const char*, const char*> kOrdered[] = {{"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"},
                                                              {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
                                                              {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"}};
  for (size_t host : probed(s)) {
    for (const auto& [low, high] : kOrdered) {
      std::optional<int64_t> a = number_setting(s, host, low), b = number_setting(s, host, high);
      if (a && b && *a > *b) {
        std::string both = fmt::format("{}={} > {}={}", low, *a, high, *b);
        findings.on(host, {both, both}, away(s, host, low));
      }
    }
    int64_t threads = number_setting(s, host, "NCCL_SOCKET_NTHREADS").value_or(1),
            each = number_setting(s, host, "NCCL_NSOCKS_PERTHREAD").value_or(1);
    if (threads > 0 && each > 0 && threads <= 1024 && each <= 1024 && threads * each > 64)
      findings.on(host,
                  {fmt::format("NCCL_SOCKET_NTHREADS={} × NCCL_NSOCKS_PERTHREAD={} is {} sockets; NCCL opens at most 64", threads, each,
                               threads * each),
                   fmt::format("NCCL_SOCKET_NTHREADS={} × NCCL_NSOCKS_PERTHREAD={} 共 {} 个套接字，NCCL 最多 64 个", threads, each,
                               threads * each)},
                  away(s, host, "NCCL_NSOCKS_PERTHREAD"));
    if (is_on(s, host, "NCCL_P2P_DISABLE") && setting(s, host, "NCCL_P2P_LEVEL"))
      findings.on(host,
                  {"NCCL_P2P_LEVEL is set, but NCCL_P2P_DISABLE=1 switches peer-to-peer off",
                   "设置了 NCCL_P2P_LEVEL，但 NCCL_P2P_DISABLE=1 已关闭 P2P"},
                  away(s, host, "NCCL_P2P_DISABLE"));
  }
}

void check_ib_ignored(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    bool off = is_on(s, host, "NCCL_IB_DISABLE"), socket = net_is(s, host, "socket");
    if (!off && !socket) continue;
    std::string names;
    for (const Setting& one : settings(s, host, {"NCCL_IB_"}))
      if (one.name != "NCCL_IB_DISABLE") names += (names.empty() ? "" : ", ") + one.name;
    if (names.empty()) continue;
    std::string by = off ? "NCCL_IB_DISABLE=1" : "NCCL_NET=Socket";
    findings.on(host, {fmt::format("{} has no effect beside {}", names, by), fmt::format("有 {} 时，{} 不起作用", by, names)},
                away(s, host, off ? "NCCL_IB_DISABLE" : "NCCL_NET"));
  }
}

void check_ib_off(const Situation& s, Findings& findings) {
  if (s.hosts.size() < 2 || !uses_nccl(s)) return;
  for (size_t host : probed(s)) {
    bool off = is_on(s, host, "NCCL_IB_DISABLE"), socket = net_is(s, host, "socket");
    if ((!off && !socket) || !has_active_ib(s.hosts[host])) continue;
    std::string by = off ? "NCCL_IB_DISABLE=1" : "NCCL_NET=Socket";
    findings.on(host,
                {fmt::format("{}, though an InfiniBand port is ACTIVE: NCCL goes over TCP", by),
                 fmt::format("{}，但有 InfiniBand 端口处于 ACTIVE：NCCL 会走 TCP", by)},
                away(s, host, off ? "NCCL_IB_DISABLE" : "NCCL_NET"));
  }
}

void check_transport_differs(const Situation& s, Findings& findings) {
  if (s.hosts.size() < 2 || !uses_nccl(s)) return;
  for (size_t host : probed(s))
    if (!has_active_ib(s.hosts[host])) return;  // elsewhere all go over sockets
  auto index = [&](const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); };
  std::vector<Camp> all = camps(s, [&](const HostView& h) {
    return std::optional<std::string>(is_on(s, index(h), "NCCL_IB_DISABLE") || net_is(s, index(h), "socket") ? "TCP" : "InfiniBand");
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    const Camp& off = odd.value == "TCP" ? odd : common;
    std::string text = fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    size_t host = off.hosts[0];
    findings.on(hosts, {text, text}, away(s, host, is_on(s, host, "NCCL_IB_DISABLE") ? "NCCL_IB_DISABLE" : "NCCL_NET"));
  });
}

bool same_host_pairs(const Situation& s, size_t host) { return s.hosts[host].ranks > 1 && uses_nccl(s); }

void check_p2p_off(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    if (!same_host_pairs(s, host) || !is_on(s, host, "NCCL_P2P_DISABLE")) continue;
    const auto& pairs = s.hosts[host].facts.gpus.pairs;
    auto good =
        std::find_if(pairs.begin(), pairs.end(), [](const host::GpuPair& p) { return p.p2p_read == "ok" && p.path.starts_with("NV"); });
    if (good == pairs.end()) good = std::find_if(pairs.begin(), pairs.end(), [](const host::GpuPair& p) { return p.p2p_read == "ok"; });
    if (good == pairs.end()) continue;
    findings.on(host,
                {fmt::format("NCCL_P2P_DISABLE=1, though GPUs {} and {} can reach each other ({})", good->a, good->b, good->path),
                 fmt::format("NCCL_P2P_DISABLE=1，但 GPU {} 与 {} 可以直接互访（{}）", good->a, good->b, good->path)},
                away(s, host, "NCCL_P2P_DISABLE"));
  }
}

void check_shm_off(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    if (!same_host_pairs(s, host) || !is_on(s, host, "NCCL_SHM_DISABLE")) continue;
    const auto& pairs = s.hosts[host].facts.gpus.pairs;
    bool p2p_off = is_on(s, host, "NCCL_P2P_DISABLE");
    auto bad = std::find_if(pairs.begin(), pairs.end(), [](const host::GpuPair& p) { return !p.p2p_read.empty() && p.p2p_read != "ok"; });
    if (!p2p_off && bad == pairs.end()) continue;
    std::string why = p2p_off ? "NCCL_P2P_DISABLE=1" : fmt::format("GPU {}–{}: {}", bad->a, bad->b, bad->p2p_read);
    findings.on(host,
                {fmt::format("NCCL_SHM_DISABLE=1 and no peer-to-peer ({}): ranks of one host talk through the network", why),
                 fmt::format("NCCL_SHM_DISABLE=1 且无 P2P（{}）：同机的 rank 之间会走网络", why)},
                away(s, host, "NCCL_SHM_DISABLE"));
  }
}

void check_hides_nothing(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    if (!is_on(s, host, "NCCL_P2P_DISABLE") && !is_on(s, host, "NCCL_IB_DISABLE")) continue;
    const auto& gpus = s.hosts[host].facts.gpus.devices;
    auto odd = std::find_if(gpus.begin(), gpus.end(), [&](const host::Gpu& g) { return g.name != gpus[0].name; });
    if (odd == gpus.end()) continue;
    findings.on(host,
                {fmt::format("{} and {}: NCCL still enumerates both", gpus[0].name, odd->name),
                 fmt::format("{} 与 {}：NCCL 仍会枚举两者", gpus[0].name, odd->name)},
                fmt::format("export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={}", gpus[0].index));
  }
}

void check_nvls(const Situation& s, Findings& findings) {
  if (!uses_nccl(s)) return;
  auto index = [&](const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); };
  std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
    const host::GpuFacts& g = h.facts.gpus;
    int minor = nccl_minor(nccl_version(s, index(h)));
    if (!g.nvswitch || g.fabric_manager.empty() || (minor != 27 && minor != 28) || number_setting(s, index(h), "NCCL_NVLS_ENABLE") == 0)
      return std::nullopt;
    return g.fabric_manager;
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text =
        fmt::format("{}: fabric manager {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    findings.on(hosts, {text, text}, "export NCCL_NVLS_ENABLE=0");
  });
}

const Row kNcclTransportRows[] = {
    {"NCCL-NET-DISABLED",
     Severity::kError,
     Group::kNccl,
     {"NCCL is told to use InfiniBand and to leave it", "既要求 NCCL 使用 InfiniBand 又禁用它"},
     {"Do NCCL_NET and NCCL_IB_DISABLE agree?", "NCCL_NET 与 NCCL_IB_DISABLE 是否一致？"},
     {"With both set no network is left, and the first collective fails: \"Error: network IB not found.\" up to 2.26, \"Failed to "
      "initialize any NET plugin\" since 2.27, then \"invalid usage\".",
      "两者同时设置时没有可用网络，首个集合通信就会失败：2.26 及以前报 “Error: network IB not found.”，2.27 起报 “Failed to initialize any "
      "NET plugin”，随后是 “invalid usage”。"},
     {"Remove one of the two.\n$ unset NCCL_IB_DISABLE", "去掉其中一个。\n$ unset NCCL_IB_DISABLE"},
     "NCCL src/plugin/net.cc",
     check_net_disabled},
    {"NCCL-CONTRADICTION",
     Severity::kWarning,
     Group::kNccl,
     {"two settings contradict each other", "两个设置互相矛盾"},
     {"Do the settings of NCCL agree with each other?", "NCCL 的各项设置彼此一致吗？"},
     {"NCCL keeps one and drops the other, with a line in its log at most: \"the total number of sockets is greater than the maximum "
      "allowed\".",
      "NCCL 只会采用其中一个，最多在日志里写一行，如 “the total number of sockets is greater than the maximum allowed”。"},
     {"Remove one of the two.\n$ env | grep ^NCCL_", "去掉其中一个。\n$ env | grep ^NCCL_"},
     "NCCL src/transport/net_socket.cc, user guide env.rst",
     check_contradiction},
    {"NCCL-IB-IGNORED",
     Severity::kNote,
     Group::kNccl,
     {"InfiniBand is tuned, but switched off", "调了 InfiniBand 参数，却又禁用了它"},
     {"Are NCCL_IB_* settings used at all?", "NCCL_IB_* 设置会被用到吗？"},
     {"With NCCL_IB_DISABLE=1 or NCCL_NET=Socket every other NCCL_IB_* variable is read by nobody.",
      "设置 NCCL_IB_DISABLE=1 或 NCCL_NET=Socket 后，其余 NCCL_IB_* 变量都不会被读取。"},
     {"Remove them, or switch InfiniBand on.\n$ unset NCCL_IB_DISABLE", "删除它们，或启用 InfiniBand。\n$ unset NCCL_IB_DISABLE"},
     "NCCL user guide env.rst",
     check_ib_ignored},
    {"NCCL-IB-OFF",
     Severity::kWarning,
     Group::kNccl,
     {"InfiniBand is there, but NCCL may not use it", "有 InfiniBand，但不让 NCCL 使用"},
     {"Is an ACTIVE InfiniBand or RoCE port left unused?", "是否有 ACTIVE 的 InfiniBand/RoCE 端口闲置？"},
     {"NCCL_IB_DISABLE=1 does not switch NCCL off: it sends over TCP sockets (\"NET/Socket\" in its log), with 5 to 20 times less "
      "bandwidth and all GPUs at 100 % waiting.",
      "NCCL_IB_DISABLE=1 并不是关闭 NCCL，而是让它走 TCP（日志中为 “NET/Socket”），带宽低 5 到 20 倍，GPU 虽显示 100% 其实在等通信。"},
     {"Remove it once the port works.\n$ unset NCCL_IB_DISABLE", "端口可用后去掉它。\n$ unset NCCL_IB_DISABLE"},
     "NCCL user guide env.rst",
     check_ib_off},
    {"NCCL-TRANSPORT-DIFFERS",
     Severity::kError,
     Group::kNccl,
     {"some hosts use InfiniBand, others may not", "部分机器用 InfiniBand，部分被禁用"},
     {"Is InfiniBand on or off on all hosts alike?", "所有机器上 InfiniBand 的开关一致吗？"},
     {"The two ends of a connection then speak different transports; the start fails or waits for ever in \"connect\".",
      "连接两端使用不同的传输方式，启动会失败，或永远停在 “connect”。"},
     {"Set it alike everywhere, through the launcher and not in a profile.\n$ unset NCCL_IB_DISABLE",
      "在所有机器上保持一致，由启动器统一传递，不要写在个别机器的 profile 里。\n$ unset NCCL_IB_DISABLE"},
     "NCCL src/init.cc",
     check_transport_differs},
    {"NCCL-P2P-OFF",
     Severity::kWarning,
     Group::kNccl,
     {"peer-to-peer is switched off though the GPUs can", "GPU 支持直接互访，但 P2P 被关闭"},
     {"Is NCCL_P2P_DISABLE left on where the driver allows peer-to-peer?", "驱动支持 P2P 的机器上是否遗留了 NCCL_P2P_DISABLE？"},
     {"It is a setting for finding faults and for consumer cards. Here it sends what NVLink or PCIe could carry directly through host "
      "memory.",
      "这是排查故障或消费级显卡才用的设置。在这里，它让本可走 NVLink 或 PCIe 直连的数据绕道主机内存。"},
     {"Remove it.\n$ unset NCCL_P2P_DISABLE", "删除它。\n$ unset NCCL_P2P_DISABLE"},
     "NCCL user guide env.rst",
     check_p2p_off},
    {"NCCL-SHM-OFF",
     Severity::kWarning,
     Group::kNccl,
     {"ranks of one host have to talk through the network", "同一台机器上的 rank 只能走网络通信"},
     {"Is shared memory switched off where GPUs have no peer-to-peer?", "在没有 P2P 的机器上是否关闭了共享内存？"},
     {"NCCL_SHM_DISABLE=1 does not force peer-to-peer: it takes shared memory away. Pairs without peer-to-peer then use the network, "
      "sockets included.",
      "NCCL_SHM_DISABLE=1 并不会“强制 P2P”，只是去掉共享内存；没有 P2P 的 GPU 对会改走网络，甚至是套接字。"},
     {"Remove it; if /dev/shm is too small, make it larger.\n$ unset NCCL_SHM_DISABLE",
      "删除它；若是 /dev/shm 太小，请扩大它。\n$ unset NCCL_SHM_DISABLE"},
     "NCCL src/transport/shm.cc",
     check_shm_off},
    {"NCCL-HIDES-NOTHING",
     Severity::kNote,
     Group::kNccl,
     {"switching transports off does not hide a card", "关闭传输方式并不能隐藏显卡"},
     {"Is NCCL_P2P_DISABLE or NCCL_IB_DISABLE meant to keep NCCL from an old card?",
      "设置 NCCL_P2P_DISABLE 或 NCCL_IB_DISABLE 是为了避开旧显卡吗？"},
     {"NCCL enumerates every card that NVML shows, whatever is switched off. Only the device list of the container or its cgroup hides "
      "one; CUDA_VISIBLE_DEVICES keeps ranks from using it.",
      "无论关掉什么，NCCL 都会枚举 NVML 能看到的每张卡。只有容器或 cgroup 的设备列表能隐藏一张卡；CUDA_VISIBLE_DEVICES 只能让 rank "
      "不用它。"},
     {"Choose the cards instead.\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=<gpus>",
      "请改为选择要用的卡。\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=<gpus>"},
     "NCCL src/misc/nvmlwrap.cc",
     check_hides_nothing},
    {"NCCL-NVLS",
     Severity::kWarning,
     Group::kNccl,
     {"NVLink SHARP may be used on some hosts only", "NVLink SHARP 可能只在部分机器上启用"},
     {"Is the fabric manager in the same state on all hosts with NVSwitch?", "带 NVSwitch 的机器上 fabric manager 状态一致吗？"},
     {"NCCL 2.27 and 2.28 fall back silently where NVLS cannot be set up. When only some ranks do, the start hangs.",
      "NCCL 2.27 与 2.28 在 NVLS 不可用时会静默回退；若只有部分 rank 回退，启动就会卡死。"},
     {"Start the fabric manager, or switch NVLS off on all hosts.\n$ export NCCL_NVLS_ENABLE=0",
      "启动 fabric manager，或在所有机器上关闭 NVLS。\n$ export NCCL_NVLS_ENABLE=0"},
     "NCCL user guide env.rst",
     check_nvls},
};

}  // namespace

std::span<const Row> nccl_transport_rows() { return kNcclTransportRows; }

}  // namespace doctor
