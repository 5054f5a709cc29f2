// The ports themselves: state, subnet manager, link layer, rate, error counters, firmware, partition.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "doctor/examine.h"
#include "doctor/infiniband_view.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"
#include "host/infiniband_text.h"

namespace doctor {
namespace {

constexpr int64_t kManyErrors = 100, kErrorRatio = 20;

void port_init(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s)) {
    if (p.port->link_layer != "InfiniBand" || (p.port->state != "INIT" && p.port->state != "ARMED")) continue;
    findings.on(p.host,
                {fmt::format("{} is {} (ibstat: Initializing), its cable is up, sm_lid is {}", p.name(), p.port->state, p.port->sm_lid),
                 fmt::format("{} 处于 {}（ibstat 显示 Initializing），线缆正常，sm_lid 为 {}", p.name(), p.port->state, p.port->sm_lid)},
                "sudo systemctl enable --now opensmd");
  }
}

void port_down(const Situation& s, Findings& findings) {
  auto state = [](const IbPlace& p) { return p.port->state; };
  for (const OddPort& odd : odd_ports(s, state))
    if (odd.value == "DOWN" && odd.usual == "ACTIVE")
      findings.on(odd.place.host,
                  {fmt::format("{} is DOWN ({}); {} have it ACTIVE", odd.place.name(), odd.place.port->phys_state, names(s, odd.others)),
                   fmt::format("{} 为 DOWN（{}），而 {} 为 ACTIVE", odd.place.name(), odd.place.port->phys_state, names(s, odd.others))},
                  odd.place.port->phys_state == "Disabled"
                      ? fmt::format("sudo ibportstate -C {} -D 0 {} enable", odd.place.device->name, odd.place.port->port)
                      : fmt::format("ibstat {}", odd.place.device->name));
}

void none_active(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (size_t h : probed(s)) {
    int64_t infiniband = 0, active = 0;
    for (const IbPlace& p : ib_ports(s)) {
      if (p.host != h) continue;
      infiniband += p.port->link_layer == "InfiniBand";
      active += p.port->state == "ACTIVE";
    }
    if (infiniband > 0 && active == 0)
      findings.on(h, {fmt::format("{} InfiniBand ports, none ACTIVE", infiniband),
                      fmt::format("{} 个 InfiniBand 端口，没有一个 ACTIVE", infiniband)});
  }
}

void no_subnet_manager(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s))
    if (p.port->link_layer == "InfiniBand" && p.port->phys_state == "LinkUp" && p.port->sm_lid == 0)
      findings.on(p.host,
                  {fmt::format("{}: sm_lid is 0, state {}", p.name(), p.port->state),
                   fmt::format("{}：sm_lid 为 0，状态 {}", p.name(), p.port->state)},
                  "sudo sminfo -C " + p.device->name);
}

// One host with both kinds in NCCL's hands, or one device that is InfiniBand here and Ethernet there.
void mixed_link(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::map<std::string, std::vector<std::string>> layers;
    for (const IbPlace& p : nccl_ib_ports(s, h)) layers[p.port->link_layer].push_back(p.name());
    if (layers.size() < 2 || ib_switched_off(s, h)) continue;
    const std::vector<std::string>& roce = layers["Ethernet"];
    std::string list;
    for (const std::string& name : roce) list += (list.empty() ? "" : ",") + name;
    findings.on(h,
                {fmt::format("{} InfiniBand ports and {} over Ethernet ({})", layers["InfiniBand"].size(), roce.size(), list),
                 fmt::format("{} 个 InfiniBand 端口，另有 {} 个以太网（RoCE）端口（{}）", layers["InfiniBand"].size(), roce.size(), list)},
                "export NCCL_IB_HCA=^=" + list);
  }
  for (const OddPort& odd : odd_ports(s, [](const IbPlace& p) { return p.port->state == "ACTIVE" ? p.port->link_layer : ""; }))
    findings.on(odd.place.host, {fmt::format("{} is {}; on {} it is {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual),
                                 fmt::format("{} 为 {}，而 {} 上为 {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual)});
}

void lower_rate(const Situation& s, Findings& findings) {
  auto rate_of = [](const IbPlace& p) { return p.port->state == "ACTIVE" && p.port->rate_gbps > 0 ? p.port->rate : ""; };
  for (const OddPort& odd : odd_ports(s, rate_of))
    if (host::rate_gbps(odd.value) < host::rate_gbps(odd.usual))
      findings.on(odd.place.host,
                  {fmt::format("{}: {}; {} have {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual),
                   fmt::format("{}：{}，而 {} 为 {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual)},
                  "sudo mlxlink -d " + odd.place.device->name);
}

void width(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s))
    if (p.port->state == "ACTIVE" && p.port->link_layer == "InfiniBand" && p.port->rate.find("(1X ") != std::string::npos)
      findings.on(p.host, {fmt::format("{}: {}: one lane of four", p.name(), p.port->rate),
                           fmt::format("{}：{}，四条通道只剩一条", p.name(), p.port->rate)});
}

// A counter stands out when it is many times that of the other ports of all hosts; they count since boot, so that a few are nothing.
void errors(const Situation& s, Findings& findings) {
  static constexpr const char* kCounters[] = {
      "symbol_error",          "link_error_recovery", "link_downed",    "port_rcv_errors", "local_link_integrity_errors",
      "local_ack_timeout_err", "packet_seq_err",      "out_of_sequence"};
  std::vector<IbPlace> ports = ib_ports(s);
  std::map<std::string, std::vector<int64_t>> all;  // of each counter, sorted
  for (const char* counter : kCounters) {
    std::vector<int64_t>& values = all[counter];
    for (const IbPlace& p : ports)
      if (auto found = p.port->counters.find(counter); found != p.port->counters.end()) values.push_back(found->second);
    std::sort(values.begin(), values.end());
  }
  for (const IbPlace& p : ports) {
    std::string told;
    for (const char* counter : kCounters) {
      auto found = p.port->counters.find(counter);
      const std::vector<int64_t>& values = all[counter];
      if (found == p.port->counters.end() || values.size() < 2) continue;
      // The middle one of the others: of all but one that is as large as this.
      size_t middle = (values.size() - 1) / 2;
      int64_t usual = values[middle] < found->second ? values[middle] : values[middle + 1];
      int64_t many = std::string_view(counter) == "link_downed" ? 10 : kManyErrors;
      if (found->second >= many && found->second / kErrorRatio >= usual)
        told += fmt::format("{}{} {} (usual: {})", told.empty() ? "" : ", ", counter, found->second, usual);
    }
    if (!told.empty()) findings.on(p.host, {p.name() + ": " + told, p.name() + "：" + told}, "sudo perfquery -x -C " + p.device->name);
  }
}

void firmware(const Situation& s, Findings& findings) {
  for (const OddPort& odd :
       odd_ports(s, [](const IbPlace& p) { return p.device->board.empty() ? "" : p.device->board + " " + p.device->firmware; })) {
    std::string mine = odd.value.substr(odd.value.find(' ') + 1), usual = odd.usual.substr(odd.usual.find(' ') + 1);
    if (odd.value.substr(0, odd.value.find(' ')) != odd.usual.substr(0, odd.usual.find(' ')) || mine.empty() || usual.empty()) continue;
    findings.on(odd.place.host, {fmt::format("{}: firmware {}; {} have {}", odd.place.device->name, mine, names(s, odd.others), usual),
                                 fmt::format("{}：固件 {}，而 {} 为 {}", odd.place.device->name, mine, names(s, odd.others), usual)});
  }
}

void partition(const Situation& s, Findings& findings) {
  auto key = [](const IbPlace& p) { return p.port->state == "ACTIVE" && p.port->link_layer == "InfiniBand" ? p.port->pkey : ""; };
  for (const OddPort& odd : odd_ports(s, key))
    if ((host::hexadecimal(odd.value) & 0x7fff) != (host::hexadecimal(odd.usual) & 0x7fff))
      findings.on(odd.place.host,
                  {fmt::format("{}: partition key {}; {} have {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual),
                   fmt::format("{}：分区键 {}，而 {} 为 {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual)});
  if (s.single()) return;
  for (const IbPlace& p : ib_ports(s))  // without the top bit a member is limited: two such cannot talk
    if (int64_t k = host::hexadecimal(key(p)); k != 0 && (k & 0x8000) == 0)
      findings.on(p.host, {fmt::format("{}: partition key {} is a limited member's", p.name(), p.port->pkey),
                           fmt::format("{}：分区键 {} 为受限（limited）成员", p.name(), p.port->pkey)});
}

void missing_device(const Situation& s, Findings& findings) {
  auto count = [](const HostView& view) -> std::optional<std::string> { return std::to_string(view.facts.infiniband.devices.size()); };
  for (const Odd& odd : odd_ones(s, count)) {
    int64_t mine = std::atoll(odd.value.c_str()), usual = std::atoll(odd.usual.c_str());
    if (mine < usual)
      findings.on(odd.hosts,
                  {fmt::format("{} of {} devices that {} have", mine, usual, names(s, odd.others)),
                   fmt::format("只有 {} 个设备，而 {} 有 {} 个", mine, names(s, odd.others), usual)},
                  "lspci | grep -i mellanox");
  }
}

constexpr Row kInfinibandPortRows[] = {
    {"IB-PORT-INIT",
     Severity::kWarning,
     Group::kInfiniband,
     {"an InfiniBand port waits for the subnet manager", "InfiniBand 端口在等待子网管理器"},
     {"Is every InfiniBand port that has a cable ACTIVE?", "每个已接线的 InfiniBand 端口是否为 ACTIVE？"},
     {"\"State: Initializing\" in ibstat means that the cable is good and no subnet manager has configured the port. NCCL passes over "
      "ports that are not ACTIVE "
      "without a word (\"NET/IB : No device found.\", then \"Using network Socket\"): the job runs at a tenth of its speed.\nopensm "
      "(service opensmd or opensm) "
      "is the subnet manager, not the switch: exactly one must run as master per fabric, on one host or on a managed switch. Restarting it "
      "is not restarting "
      "the switch. RoCE has none.",
      "ibstat 显示 “State: Initializing” 说明线缆正常，但没有子网管理器配置该端口。NCCL 会静默跳过非 ACTIVE 的端口（“NET/IB : No device "
      "found.”，随后 “Using network "
      "Socket”），速度只剩十分之一。\nopensm（服务名 opensmd 或 opensm）是子网管理器，而不是交换机：每个 IB 网络必须恰好有一个作为 master "
      "运行，可以在某一台主机上，也可以在带管理功能的交换机上。"
      "重启它并不是“重启交换机”。RoCE 不需要子网管理器。"},
     {"Start one subnet manager, on one host only (or on the switch):\n$ sudo systemctl enable --now opensmd\n$ sudo sminfo\n$ ibstat",
      "只在一台主机（或交换机）上启动一个子网管理器：\n$ sudo systemctl enable --now opensmd\n$ sudo sminfo\n$ ibstat"},
     "nccl src/transport/net_ib.cc; opensm(8)",
     port_init},
    {"IB-PORT-DOWN",
     Severity::kWarning,
     Group::kInfiniband,
     {"a port is down that other hosts have up", "其他主机上正常的端口在本机为 DOWN"},
     {"Is each port ACTIVE that the other hosts have ACTIVE?", "其他主机上 ACTIVE 的端口在本机是否也是 ACTIVE？"},
     {"\"Polling\" means no light or no cable, \"Disabled\" that somebody switched it off. NCCL passes over the port in silence; this host "
      "has fewer rails than "
      "the others, and all wait for it.",
      "“Polling” 表示没有光信号或没插线，“Disabled” 表示被人为关闭。NCCL 静默跳过该端口，本机可用的链路少于其他主机，所有主机都要等它。"},
     {"Check cable and optic; if it is disabled:\n$ ibstat\n$ sudo ibportstate <lid> <port> enable",
      "检查线缆与光模块；若被禁用：\n$ ibstat\n$ sudo ibportstate <lid> <port> enable"},
     "nccl src/transport/net_ib.cc",
     port_down},
    {"IB-NONE-ACTIVE",
     Severity::kNote,
     Group::kInfiniband,
     {"InfiniBand cards are there and none is in use", "装有 InfiniBand 网卡但没有一个可用"},
     {"Is at least one InfiniBand port ACTIVE?", "是否至少有一个 InfiniBand 端口为 ACTIVE？"},
     {"NCCL will use sockets over Ethernet. If the fabric is meant to be used, cables or the subnet manager are missing on all hosts.",
      "NCCL 会改用以太网 socket。若本应使用 IB，则所有主机都缺线缆或子网管理器。"},
     {"$ ibstat\n$ sudo sminfo", "$ ibstat\n$ sudo sminfo"},
     "",
     none_active},
    {"IB-NO-SM",
     Severity::kWarning,
     Group::kInfiniband,
     {"the fabric has no subnet manager", "IB 网络没有子网管理器"},
     {"Does every InfiniBand port with a link know its subnet manager (sm_lid is not 0)?",
      "每个已连通的 InfiniBand 端口是否都有子网管理器（sm_lid 不为 0）？"},
     {"sm_lid 0 means that no subnet manager has ever configured this port since its link came up. It stays in INIT, or works on old "
      "routes until the next change "
      "of the fabric. Exactly one opensm is master; a second only stands by. Over Ethernet (RoCE) sm_lid is always 0, rightly.",
      "sm_lid 为 0 表示该端口连通后从未被子网管理器配置过：要么停在 INIT，要么靠旧路由工作，直到网络下一次变动。一个 IB 网络恰好一个 "
      "opensm 为 master，第二个只作备用。"
      "以太网（RoCE）端口的 sm_lid 恒为 0，属正常。"},
     {"On one host of the fabric:\n$ sudo systemctl enable --now opensmd\n$ sudo sminfo",
      "在 IB 网络中的一台主机上：\n$ sudo systemctl enable --now opensmd\n$ sudo sminfo"},
     "opensm(8); linux Documentation/ABI/stable/sysfs-class-infiniband",
     no_subnet_manager},
    {"IB-MIXED-LINK",
     Severity::kWarning,
     Group::kInfiniband,
     {"NCCL would mix InfiniBand and RoCE ports", "NCCL 会混用 InfiniBand 与 RoCE 端口"},
     {"Have all ports NCCL would use the same link layer, on all hosts?", "NCCL 将使用的所有端口链路层是否一致？"},
     {"An Ethernet management port of the same make (mlx5_bond_0) counts as an HCA. \"NET/IB : Attempted to connect incompatible devices: "
      "… Try selecting NICs of only "
      "one link type using NCCL_IB_HCA\", or gradients over the management port.",
      "同品牌的以太网管理口（mlx5_bond_0）也会被当作 HCA：“NET/IB : Attempted to connect incompatible devices: … Try selecting NICs of "
      "only one link type using "
      "NCCL_IB_HCA”，或者梯度走了管理口。"},
     {"Leave out the Ethernet ports (\"^=\": all but exactly these):\n$ export NCCL_IB_HCA=^=<device>",
      "排除以太网端口（“^=” 表示精确排除）：\n$ export NCCL_IB_HCA=^=<device>"},
     "nccl src/transport/net_ib.cc",
     mixed_link},
    {"IB-RATE",
     Severity::kWarning,
     Group::kInfiniband,
     {"a port runs at a lower rate than the others'", "端口速率低于其他主机"},
     {"Does each port run at the rate it has on the other hosts?", "每个端口的速率与其他主机上是否一致？"},
     {"HDR (200) that came up as EDR (100) is a cable or optic; the slowest rail sets the pace of every all-reduce.",
      "HDR（200）降为 EDR（100）通常是线缆或光模块问题；每次 all-reduce 的速度由最慢的链路决定。"},
     {"$ sudo mlxlink -d <device> -m -c\nChange cable or optic.", "$ sudo mlxlink -d <device> -m -c\n更换线缆或光模块。"},
     "",
     lower_rate},
    {"IB-WIDTH",
     Severity::kWarning,
     Group::kInfiniband,
     {"a link has come up on one lane", "链路只有一条通道工作"},
     {"Do all links run on more than one lane?", "链路是否都以多通道工作？"},
     {"A 4X link that shows 1X has lost three lanes: a quarter of the rate. It is a damaged cable or a dirty connector.",
      "4X 链路显示 1X，说明丢了三条通道，速率只有四分之一：线缆受损或接头脏污。"},
     {"$ sudo ibdiagnet --ls 25 --lw 4x\nReseat or change the cable.", "$ sudo ibdiagnet --ls 25 --lw 4x\n重新插拔或更换线缆。"},
     "",
     width},
    {"IB-ERRORS",
     Severity::kWarning,
     Group::kInfiniband,
     {"a port counts many errors", "端口错误计数偏高"},
     {"Are the error counters of each port like those of the others?", "各端口的错误计数是否相近？"},
     {"symbol_error, link_downed and port_rcv_errors come from cable and optic, local_ack_timeout_err and packet_seq_err from loss on the "
      "way. They end in "
      "\"Got completion from peer … with status=12 … vendor err 129\".",
      "symbol_error、link_downed、port_rcv_errors 来自线缆与光模块，local_ack_timeout_err、packet_seq_err 来自途中丢包，最终报 “Got "
      "completion from peer … with status=12 … vendor "
      "err 129”。"},
     {"Read them again after some load; clear and watch:\n$ sudo perfquery -x\n$ sudo ibqueryerrors",
      "加载一段时间后再读取；清零并观察：\n$ sudo perfquery -x\n$ sudo ibqueryerrors"},
     "NVIDIA/nccl#426",
     errors},
    {"IB-FIRMWARE",
     Severity::kNote,
     Group::kInfiniband,
     {"the same card has another firmware than on the other hosts", "同型号网卡的固件版本不一致"},
     {"Is the firmware of each card the same on all hosts?", "各主机上同一网卡的固件是否一致？"},
     {"Different firmware behaves differently under load (adaptive routing, congestion control) and may number its devices in another "
      "order.",
      "不同固件在负载下行为不同（自适应路由、拥塞控制），设备编号顺序也可能不同。"},
     {"$ ibstat | grep -i firmware\n$ sudo mlxfwmanager --query", "$ ibstat | grep -i firmware\n$ sudo mlxfwmanager --query"},
     "",
     firmware},
    {"IB-PKEY",
     Severity::kWarning,
     Group::kInfiniband,
     {"ports are in different partitions, or only limited members", "端口处于不同分区或仅为受限成员"},
     {"Are all ports full members of one partition?", "所有端口是否为同一分区的完全成员？"},
     {"Queue pairs connect only within a partition, and two limited members (0x7fff) not at all: \"Call to ibv_modify_qp failed\", or "
      "status=12.",
      "QP 只能在同一分区内建立，两个受限成员（0x7fff）之间完全不能通信：“Call to ibv_modify_qp failed”，或 status=12。"},
     {"Make them full members in the subnet manager's partitions.conf, or name the index of another key:\n$ export NCCL_IB_PKEY=1",
      "在子网管理器的 partitions.conf 中设为完全成员，或指定其他分区键的索引：\n$ export NCCL_IB_PKEY=1"},
     "opensm partition configuration",
     partition},
    {"IB-DEVICE-MISSING",
     Severity::kWarning,
     Group::kInfiniband,
     {"a host has fewer InfiniBand or RoCE devices than the others", "主机的 InfiniBand/RoCE 设备少于其他主机"},
     {"Has each host as many devices as the others?", "每台主机的设备数量是否一致？"},
     {"A card has fallen off the bus, its driver (mlx5_ib) is not loaded, or the container was not given it. NCCL uses what is there, and "
      "a host without any uses "
      "sockets while the others use InfiniBand: connections between them fail.",
      "网卡掉线、驱动（mlx5_ib）未加载，或容器没有获得该设备。NCCL 只用现有的；若一台主机完全没有，它会用 socket 而其他主机用 "
      "InfiniBand，两者之间无法建立连接。"},
     {"$ lspci | grep -i mellanox\n$ sudo modprobe mlx5_ib\nIn a container: --device /dev/infiniband",
      "$ lspci | grep -i mellanox\n$ sudo modprobe mlx5_ib\n容器中：--device /dev/infiniband"},
     "",
     missing_device},
};

}  // namespace

std::span<const Row> infiniband_port_rows() { return kInfinibandPortRows; }

}  // namespace doctor
