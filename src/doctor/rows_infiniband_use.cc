// What NCCL needs to use the ports, and what keeps it from them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/infiniband_view.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"
#include "host/infiniband_text.h"

namespace doctor {
namespace {

constexpr int kGidByItself = 22100;  // NCCL's first version whose default NCCL_IB_GID_INDEX is -1

bool has_active(const Situation& s, size_t h) {
  std::vector<IbPlace> all = ib_ports(s);
  return std::any_of(all.begin(), all.end(), [&](const IbPlace& p) { return p.host == h && p.port->state == "ACTIVE"; });
}

void no_verbs(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const host::InfinibandFacts& ib = s.hosts[h].facts.infiniband;
    if (s.single() || !uses_nccl(s, h) || !has_active(s, h) || ib_switched_off(s, h) || (ib.uverbs && !ib.libibverbs.empty())) continue;
    if (ib.libibverbs.empty())
      findings.on(h, {"ports are ACTIVE, and there is no libibverbs.so.1", "端口为 ACTIVE，但系统中没有 libibverbs.so.1"},
                  "sudo apt-get install -y libibverbs1 ibverbs-providers");
    else
      findings.on(h, {"ports are ACTIVE, and there is no /dev/infiniband/uverbs*", "端口为 ACTIVE，但没有 /dev/infiniband/uverbs*"},
                  "sudo modprobe ib_uverbs");
  }
}

void disabled_left(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (size_t h : probed(s)) {
    bool asked = uses_nccl(s, h) || set_for_job(s, "NCCL_IB_DISABLE") || set_for_job(s, "NCCL_NET");
    if (!asked || !has_active(s, h) || !ib_switched_off(s, h)) continue;
    std::string name = std::atoll(job_setting(s, h, "NCCL_IB_DISABLE").c_str()) != 0 ? "NCCL_IB_DISABLE" : "NCCL_NET";
    std::string ports;
    for (const IbPlace& p : ib_ports(s))
      if (p.host == h && p.port->state == "ACTIVE") ports += fmt::format("{}{} {}", ports.empty() ? "" : ", ", p.name(), p.port->rate);
    findings.on(h,
                {fmt::format("{}={} while ACTIVE: {}", name, job_setting(s, h, name), ports),
                 fmt::format("设置了 {}={}，而以下端口为 ACTIVE：{}", name, job_setting(s, h, name), ports)},
                "unset " + name);
  }
}

void some_hosts(const Situation& s, Findings& findings) {
  std::vector<size_t> with, without;
  for (size_t h : probed(s)) {
    if (!uses_nccl(s, h)) continue;
    (!ib_switched_off(s, h) && !nccl_ib_ports(s, h).empty() ? with : without).push_back(h);
  }
  if (with.empty() || without.empty()) return;
  findings.on(without,
              {"NCCL would use sockets here, and InfiniBand on " + names(s, with),
               "NCCL 在这些主机上会用 socket，而在 " + names(s, with) + " 上会用 InfiniBand"},
              "export NCCL_IB_DISABLE=1");
}

void hca_filter(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string filter = job_setting(s, h, "NCCL_IB_HCA");
    if (filter.empty() || !has_active(s, h) || ib_switched_off(s, h) || !nccl_ib_ports(s, h).empty()) continue;
    std::string ports;
    for (const IbPlace& p : ib_ports(s))
      if (p.host == h && p.port->state == "ACTIVE") ports += (ports.empty() ? "" : ", ") + p.name();
    findings.on(h,
                {fmt::format("NCCL_IB_HCA={} takes no ACTIVE port; there are {}", filter, ports),
                 fmt::format("NCCL_IB_HCA={} 没有匹配到任何 ACTIVE 端口；现有 {}", filter, ports)},
                "unset NCCL_IB_HCA");
  }
}

void hca_prefix(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string filter = job_setting(s, h, "NCCL_IB_HCA");
    if (filter.empty() || filter[0] == '=' || filter.substr(0, 2) == "^=") continue;
    bool inverted = filter[0] == '^';
    for (std::string_view word : base::split(std::string_view(filter).substr(inverted), ',')) {
      std::string_view name = word.substr(0, word.find(':'));
      bool exact = false;
      std::string more;
      for (const host::IbDevice& d : s.hosts[h].facts.infiniband.devices) {
        if (d.name == name) exact = true;
        else if (!name.empty() && d.name.substr(0, name.size()) == name) more += (more.empty() ? "" : ", ") + d.name;
      }
      if (exact && !more.empty())
        findings.on(h,
                    {fmt::format("NCCL_IB_HCA={}: {} also stands for {}", filter, name, more),
                     fmt::format("NCCL_IB_HCA={}：{} 还会匹配 {}", filter, name, more)},
                    fmt::format("export NCCL_IB_HCA={}={}", inverted ? "^" : "", filter.substr(inverted)));
    }
  }
}

void hca_names(const Situation& s, Findings& findings) {
  auto map = [&](const HostView& view) -> std::optional<std::string> {
    auto h = static_cast<size_t>(&view - s.hosts.data());
    if (job_setting(s, h, "NCCL_IB_HCA").empty()) return std::nullopt;
    std::string text;
    for (const host::IbDevice& d : view.facts.infiniband.devices) {
      if (d.pci.empty()) return std::nullopt;
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", d.name, d.pci);
    }
    return text.empty() ? std::nullopt : std::optional(text);
  };
  for (const Odd& odd : odd_ones(s, map))
    findings.on(odd.hosts, {fmt::format("{}; on {}: {}", odd.value, names(s, odd.others), odd.usual),
                            fmt::format("{}；而 {} 上为 {}", odd.value, names(s, odd.others), odd.usual)});
}

const host::IbGid* gid_at(const host::IbPort& port, int64_t index) {
  for (const host::IbGid& gid : port.gids)
    if (gid.index == index) return &gid;
  return nullptr;
}

std::string best_gid(const host::IbPort& port) {
  for (const host::IbGid& gid : port.gids)
    if (gid.type == "RoCE v2" && host::is_ipv4_gid(gid.gid)) return std::to_string(gid.index);
  return "";
}

void gid_index(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    base::Result<int64_t> index = base::parse_int(job_setting(s, h, "NCCL_IB_GID_INDEX"), 0, 65535);
    if (!index.ok() || ib_switched_off(s, h)) continue;
    for (const IbPlace& p : nccl_ib_ports(s, h)) {
      if (p.port->link_layer != "Ethernet" || p.port->gids.empty()) continue;
      const host::IbGid* gid = gid_at(*p.port, *index);
      std::string fault = !gid                                ? "is empty"
                          : gid->type != "RoCE v2"            ? "is " + gid->type
                          : host::is_link_local_gid(gid->gid) ? "is link-local"
                                                              : "";
      if (fault.empty()) continue;
      std::string best = best_gid(*p.port);
      findings.on(h,
                  {fmt::format("{}: GID {} {}{}", p.name(), *index, fault, best.empty() ? "" : "; RoCE v2 over IPv4 is GID " + best),
                   fmt::format("{}：GID {} {}{}", p.name(), *index,
                               !gid                     ? "为空"
                               : gid->type != "RoCE v2" ? "类型为 " + gid->type
                                                        : "是链路本地地址",
                               best.empty() ? "" : "；RoCE v2 的 IPv4 GID 是 " + best)},
                  best.empty() ? "unset NCCL_IB_GID_INDEX" : "export NCCL_IB_GID_INDEX=" + best);
    }
  }
}

void gid_default(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const auto& nccl = s.hosts[h].facts.software.nccl;
    int version = nccl.empty() ? 0 : host::nccl_version(nccl[0].version);
    if (s.single() || version == 0 || version >= kGidByItself || !job_setting(s, h, "NCCL_IB_GID_INDEX").empty() || ib_switched_off(s, h))
      continue;
    for (const IbPlace& p : nccl_ib_ports(s, h)) {
      const host::IbGid* first = gid_at(*p.port, 0);
      std::string best = best_gid(*p.port);
      if (p.port->link_layer != "Ethernet" || best.empty() || best == "0" || !first) continue;
      findings.on(h,
                  {fmt::format("NCCL {} takes GID 0 of {} ({}); RoCE v2 over IPv4 is GID {}", nccl[0].version, p.name(), first->type, best),
                   fmt::format("NCCL {} 使用 {} 的 GID 0（{}）；RoCE v2 的 IPv4 GID 是 {}", nccl[0].version, p.name(), first->type, best)},
                  "export NCCL_IB_GID_INDEX=" + best);
    }
  }
}

// GPUs that can do GPUDirect RDMA at all: GeForce cards cannot.
bool data_centre(const HostView& view) {
  for (const host::Gpu& g : view.facts.gpus.devices)
    for (const char* name : {"A100", "A800", "H100", "H800", "H200", "H20", "B200", "B300", "V100", "A40", "L40", "A30"})
      if (g.name.find(name) != std::string::npos) return true;
  return false;
}

void peermem(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const HostView& view = s.hosts[h];
    if (s.single() || !uses_nccl(s, h) || !data_centre(view) || ib_switched_off(s, h) || nccl_ib_ports(s, h).empty()) continue;
    if (view.facts.infiniband.peermem || view.facts.gpus.open_module) continue;  // the open module brings DMA-BUF
    findings.on(h,
                {"nvidia_peermem is not loaded, and the driver is not the open one (DMA-BUF)",
                 "未加载 nvidia_peermem，且驱动不是开源内核模块（无 DMA-BUF）"},
                "sudo modprobe nvidia-peermem");
  }
}

constexpr Row kInfinibandUseRows[] = {
    {"IB-NO-VERBS",
     Severity::kWarning,
     Group::kInfiniband,
     {"the ports are active, and the library to use them is missing", "端口可用，但缺少用户态 verbs 库或设备节点"},
     {"Are libibverbs and the device nodes there?", "libibverbs 与设备节点是否存在？"},
     {"NCCL opens libibverbs.so.1 at run time: \"Failed to open libibverbs.so[.1]\", then \"Using network Socket\" at INFO level only. "
      "Images without rdma-core and "
      "containers without /dev/infiniband end here.",
      "NCCL 在运行时加载 libibverbs.so.1：失败时仅在 INFO 级别打印 “Failed to open libibverbs.so[.1]”，随后 “Using network "
      "Socket”。镜像没有 rdma-core、容器没有挂入 /dev/infiniband 就会如此。"},
     {"$ sudo apt-get install -y libibverbs1 ibverbs-providers\nIn a container: --device /dev/infiniband --cap-add IPC_LOCK",
      "$ sudo apt-get install -y libibverbs1 ibverbs-providers\n容器中：--device /dev/infiniband --cap-add IPC_LOCK"},
     "nccl src/misc/ibvsymbols.cc",
     no_verbs},
    {"IB-DISABLED-LEFT",
     Severity::kWarning,
     Group::kInfiniband,
     {"InfiniBand works and is switched off for NCCL", "InfiniBand 可用，却被 NCCL 设置关闭"},
     {"Does NCCL use the ports that are ACTIVE?", "NCCL 是否会使用 ACTIVE 的端口？"},
     {"NCCL_IB_DISABLE=1 (or NCCL_NET=Socket) was left from a work-around. NCCL is not off: it goes over TCP (\"Using network Socket\"), "
      "at a fifth to a twentieth of "
      "the bandwidth; the GPUs show 100 % and draw little power.",
      "NCCL_IB_DISABLE=1（或 NCCL_NET=Socket）是以前绕过问题时留下的。NCCL 并没有关闭，而是改走 TCP（“Using network "
      "Socket”），带宽只有五分之一到二十分之一，GPU 利用率 100% 但功耗很低。"},
     {"$ unset NCCL_IB_DISABLE\nTo fail loudly instead of falling back in silence:\n$ export NCCL_NET=IB",
      "$ unset NCCL_IB_DISABLE\n若希望直接报错而不是静默回退：\n$ export NCCL_NET=IB"},
     "NCCL user guide, NCCL_IB_DISABLE",
     disabled_left},
    {"IB-SOME-HOSTS",
     Severity::kWarning,
     Group::kInfiniband,
     {"NCCL would use InfiniBand on some hosts and sockets on others", "部分主机用 InfiniBand，部分用 socket"},
     {"Would NCCL use the same kind of network on all hosts?", "NCCL 在各主机上是否会使用同一种网络？"},
     {"Each rank chooses its network by itself. Where one side waits for InfiniBand and the other for a socket they do not come together: "
      "a hang after \"Init START\", "
      "or \"message truncated\".",
      "每个 rank 各自选择网络。一侧等 InfiniBand，另一侧等 socket，两者无法建立连接：“Init START” 之后卡住，或报 “message truncated”。"},
     {"Repair InfiniBand on the odd hosts, or use sockets on all of them meanwhile:\n$ export NCCL_IB_DISABLE=1",
      "修复这些主机的 InfiniBand，或暂时全部使用 socket：\n$ export NCCL_IB_DISABLE=1"},
     "nccl src/plugin/net.cc",
     some_hosts},
    {"IB-HCA-FILTER",
     Severity::kWarning,
     Group::kInfiniband,
     {"NCCL_IB_HCA leaves no port on a host", "NCCL_IB_HCA 在某台主机上没有匹配到端口"},
     {"Does NCCL_IB_HCA take at least one ACTIVE port on every host?", "NCCL_IB_HCA 在每台主机上是否至少匹配一个 ACTIVE 端口？"},
     {"Names differ between machines (mlx5_0, mlx5_bond_0, bnxt_re0, rocep1s0). \"NCCL_IB_HCA set by environment to …\", \"NET/IB : No "
      "device found.\", and on over "
      "sockets.",
      "各机器的设备名不同（mlx5_0、mlx5_bond_0、bnxt_re0、rocep1s0）。日志为 “NCCL_IB_HCA set by environment to …”、“NET/IB : No device "
      "found.”，随后改用 socket。"},
     {"$ ibdev2netdev\n$ unset NCCL_IB_HCA", "$ ibdev2netdev\n$ unset NCCL_IB_HCA"},
     "NCCL user guide, NCCL_IB_HCA",
     hca_filter},
    {"IB-HCA-PREFIX",
     Severity::kWarning,
     Group::kInfiniband,
     {"NCCL_IB_HCA is a prefix and stands for more devices than meant", "NCCL_IB_HCA 按前缀匹配，涵盖了更多设备"},
     {"Does each name in NCCL_IB_HCA stand for one device?", "NCCL_IB_HCA 中的每个名字是否只对应一个设备？"},
     {"mlx5_1 also takes mlx5_10 and mlx5_11; excluded with \"^\", they are excluded too.",
      "mlx5_1 也会匹配 mlx5_10、mlx5_11；用 “^” 排除时它们也会一并被排除。"},
     {"\"=\" means exactly:\n$ export NCCL_IB_HCA==<device>", "“=” 表示完全匹配：\n$ export NCCL_IB_HCA==<device>"},
     "nccl src/misc/utils.cc matchIf",
     hca_prefix},
    {"IB-HCA-NAMES",
     Severity::kNote,
     Group::kInfiniband,
     {"the same device name is another card on another host", "同名设备在不同主机上对应不同的卡"},
     {"Do the names in NCCL_IB_HCA stand for the same slots on all hosts?", "NCCL_IB_HCA 中的设备名在各主机上是否对应同一插槽？"},
     {"mlx5_N are numbered as the driver found them; another BIOS or firmware gives another order. A list of names then picks the storage "
      "or management card on one "
      "of the hosts.",
      "mlx5_N 按驱动发现的顺序编号，BIOS 或固件不同顺序就不同。按名字写的列表可能在某台主机上选中了存储网或管理网的卡。"},
     {"Compare, and use names by PCI slot (rdma-core's 60-rdma-persistent-naming.rules):\n$ ls -l /sys/class/infiniband",
      "对比各主机，或改用按 PCI 插槽命名（rdma-core 的 60-rdma-persistent-naming.rules）：\n$ ls -l /sys/class/infiniband"},
     "rdma-core kernel-boot/rdma-persistent-naming",
     hca_names},
    {"IB-GID-INDEX",
     Severity::kWarning,
     Group::kInfiniband,
     {"NCCL_IB_GID_INDEX points to a GID that does not work", "NCCL_IB_GID_INDEX 指向不可用的 GID"},
     {"Is the GID at NCCL_IB_GID_INDEX a RoCE v2 one with a real address, on every port and host?",
      "NCCL_IB_GID_INDEX 对应的 GID 在每个端口、每台主机上是否都是带真实地址的 RoCE v2？"},
     {"The order of the table depends on the addresses of the interface and differs between hosts. An empty place, a v1 GID or a "
      "link-local one ends in \"Call to "
      "ibv_modify_qp failed with 22 Invalid argument\" or 110, or status=12 vendor err 129.",
      "GID 表的顺序取决于网卡上的地址，各主机可能不同。指向空位、v1 或链路本地 GID 时会报 “Call to ibv_modify_qp failed with 22 Invalid "
      "argument” 或 110，或 status=12 vendor err 129。"},
     {"From NCCL 2.21 leave it unset; it then finds the right one:\n$ unset NCCL_IB_GID_INDEX\n$ show_gids",
      "NCCL 2.21 起不要设置，会自动选择：\n$ unset NCCL_IB_GID_INDEX\n$ show_gids"},
     "nccl src/transport/net_ib.cc; pytorch/pytorch#81628",
     gid_index},
    {"IB-GID-DEFAULT",
     Severity::kWarning,
     Group::kInfiniband,
     {"this NCCL takes the first GID, which is not a RoCE v2 one", "此版本 NCCL 默认使用第一个 GID，而它不是 RoCE v2"},
     {"Does this version of NCCL find the RoCE v2 GID by itself?", "此版本的 NCCL 能否自动选择 RoCE v2 GID？"},
     {"Before 2.21 the default of NCCL_IB_GID_INDEX is 0, mostly a link-local v1 GID: it does not pass a router, and on many networks "
      "nothing at all.",
      "2.21 之前 NCCL_IB_GID_INDEX 默认为 0，多为链路本地的 v1 GID：无法跨路由，在许多网络上完全不通。"},
     {"$ export NCCL_IB_GID_INDEX=3", "$ export NCCL_IB_GID_INDEX=3"},
     "NCCL user guide, NCCL_IB_GID_INDEX: -1 since 2.21",
     gid_default},
    {"IB-PEERMEM",
     Severity::kWarning,
     Group::kInfiniband,
     {"GPUDirect RDMA is off: nvidia_peermem is not loaded", "GPUDirect RDMA 未启用：没有加载 nvidia_peermem"},
     {"Can the card read GPU memory directly?", "网卡能否直接读写 GPU 显存？"},
     {"Every byte takes the way through host memory; the log shows \"NET/IB/0\" without \"/GDRDMA\" and \"GPU Direct RDMA Disabled\". "
      "Often half the bandwidth.",
      "每个字节都要经过主机内存；日志显示 “NET/IB/0” 而没有 “/GDRDMA”，以及 “GPU Direct RDMA Disabled”，带宽往往减半。"},
     {"$ sudo modprobe nvidia-peermem\n$ echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
      "$ sudo modprobe nvidia-peermem\n$ echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf"},
     "NCCL user guide, troubleshooting: GPU Direct",
     peermem},
};

}  // namespace

std::span<const Row> infiniband_use_rows() { return kInfinibandUseRows; }

}  // namespace doctor
