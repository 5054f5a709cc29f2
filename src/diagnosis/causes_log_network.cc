// Faults of networks and NCCL as they show in logs.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogNetworkCauses[] = {
    {"NET-CONNECT-REFUSED",
     {"nobody listens where a rank connects to", "rank 连接的地址无人监听"},
     {"The address answered with a reset: the peer has ended already, the address is that of another machine (docker0 and virbr0 are the "
      "same on every host), or a firewall refuses. Look at the address in the message first.",
      "对方以 reset 回应：对端已经退出，或该地址属于别的机器（docker0、virbr0 在每台主机上都一样），或防火墙拒绝。请先看消息中的地址。"},
     {"Does the address belong to the host that is meant?\n$ phalanx check\n$ phalanx explain NET-WRONG-IFACE",
      "该地址属于所要的主机吗？\n$ phalanx check\n$ phalanx explain NET-WRONG-IFACE"},
     "nccl src/misc/socket.cc; gloo/transport/tcp/pair.cc"},
    {"NET-TRUNCATED",
     {"ranks exchanged messages of different sizes", "rank 之间的消息大小不一致"},
     {"NCCL received more bytes than it expected: the ranks are in different collectives, have different NCCL settings (NCCL_PROTO, "
      "NCCL_ALGO), or a stranger (a port scanner, another job) connected to the port.",
      "NCCL 收到的字节数与预期不符：各 rank 处于不同的集合通信、NCCL "
      "设置不同（NCCL_PROTO、NCCL_ALGO），或有外来者（端口扫描、其它任务）连到了该端口。"},
     {"Compare the settings of the hosts, and let torch check every collective:\n$ phalanx check\n$ phalanx run --env "
      "TORCH_DISTRIBUTED_DEBUG=DETAIL …",
      "比较各主机的设置，并让 torch 检查每次集合通信：\n$ phalanx check\n$ phalanx run --env TORCH_DISTRIBUTED_DEBUG=DETAIL …"},
     "nccl src/transport/net_socket.cc, src/bootstrap.cc"},
    {"IB-RETRY",
     {"an InfiniBand or RoCE peer did not answer any more", "InfiniBand 或 RoCE 对端不再应答"},
     {"Completion status 12 (transport retries exceeded) or 13 (receiver not ready): a link flapped, the GID or the route is wrong, MTUs "
      "differ, or the peer process died first. Right after the start it is the configuration; hours later it is a cable, a switch or the "
      "peer.",
      "完成状态 12（传输重试超限）或 13（接收方未就绪）：链路抖动、GID 或路由错误、MTU "
      "不一致，或对端进程先退出。启动后立即出现多为配置问题；数小时后出现多为线缆、交换机或对端。"},
     {"See whether the peer died first; then the ports. A longer timeout rides out short flaps:\n$ phalanx check\n$ phalanx run --env "
      "NCCL_IB_TIMEOUT=22 …",
      "先看对端是否先退出，再看端口。更长的超时可以渡过短暂抖动：\n$ phalanx check\n$ phalanx run --env NCCL_IB_TIMEOUT=22 …"},
     "NVIDIA/nccl#1405, #426; libibverbs ibv_wc_status"},
    {"IB-REMOTE-ACCESS",
     {"an InfiniBand transfer was refused by the other side", "InfiniBand 传输被对端拒绝"},
     {"Completion status 10, 11 or 4: memory of the peer is not registered (any more), a device that is none of the fabric was taken "
      "(NVSwitch or management ports), or PCIe access control stands between.",
      "完成状态 10、11 或 4：对端内存未注册（或已注销）、选中了不属于计算网络的设备（NVSwitch 或管理口），或 PCIe ACS 阻隔。"},
     {"Name the cards of the fabric:\n$ phalanx run --env NCCL_IB_HCA==<device>,<device> …",
      "指明计算网络的网卡：\n$ phalanx run --env NCCL_IB_HCA==<device>,<device> …"},
     "libibverbs ibv_wc_status; nccl src/transport/net_ib.cc"},
    {"IB-ASYNC-EVENT",
     {"an InfiniBand device reported a fatal event", "InfiniBand 设备报告了致命事件"},
     {"The driver told NCCL that a port went down, a device failed, or a queue broke. Cable, optic, switch or firmware.",
      "驱动通知 NCCL 端口断开、设备失效或队列损坏。原因在线缆、光模块、交换机或固件。"},
     {"$ sudo dmesg -T | grep -iE \"mlx|infiniband\"\n$ ibstat", "$ sudo dmesg -T | grep -iE \"mlx|infiniband\"\n$ ibstat"},
     "nccl src/transport/net_ib.cc"},
    {"NCCL-SYSTEM-ERROR",
     {"NCCL failed in a system call and did not say which", "NCCL 在系统调用中失败但没有说明"},
     {"\"unhandled system error\" alone says nothing: the cause is in an NCCL WARN line, and NCCL_DEBUG was not set, or the line is in "
      "another rank's log.",
      "单独的 “unhandled system error” 不说明原因：原因在 NCCL WARN 行里，而 NCCL_DEBUG 没有设置，或该行在另一个 rank 的日志中。"},
     {"Run again with NCCL's own words:\n$ phalanx run --env NCCL_DEBUG=INFO …",
      "让 NCCL 打印详情后重跑：\n$ phalanx run --env NCCL_DEBUG=INFO …"},
     "nccl src/nccl.h.in"},
    {"NCCL-CUDA-ERROR",
     {"NCCL failed in a call of CUDA", "NCCL 在 CUDA 调用中失败"},
     {"An error of CUDA that surfaced inside NCCL: memory, a fault of an earlier kernel, a driver that does not fit. Another line of the "
      "same rank often says more.",
      "在 NCCL 内部暴露的 CUDA 错误：显存、之前 kernel 的故障、驱动不匹配。同一 rank 的其它输出往往说得更多。"},
     {"$ phalanx run --env NCCL_DEBUG=INFO …\n$ phalanx check", "$ phalanx run --env NCCL_DEBUG=INFO …\n$ phalanx check"},
     "nccl src/include/checks.h"},
    {"NCCL-INVALID-USAGE",
     {"NCCL was used in a way it refuses", "NCCL 拒绝了这种用法"},
     {"\"invalid usage\": two ranks on one GPU, a network that was named and is not there, ranks that do not agree on their number. The "
      "NCCL WARN line above it says which.",
      "“invalid usage”：两个 rank 用同一张 GPU、指定的网络不存在、各 rank 对总数意见不一。其上方的 NCCL WARN 行会说明。"},
     {"$ phalanx run --env NCCL_DEBUG=WARN …", "$ phalanx run --env NCCL_DEBUG=WARN …"},
     "nccl src/nccl.h.in"},
    {"NCCL-INTERNAL",
     {"NCCL reports an internal error", "NCCL 报告内部错误"},
     {"A bug of NCCL, memory that was corrupted, or a topology it cannot read. The NCCL WARN lines before it are the evidence.",
      "NCCL 的 bug、内存被破坏，或它读不懂的拓扑。之前的 NCCL WARN 行就是证据。"},
     {"$ phalanx run --env NCCL_DEBUG=INFO …", "$ phalanx run --env NCCL_DEBUG=INFO …"},
     "nccl src/nccl.h.in"},
    {"NCCL-IMEX",
     {"the NVLink domain between hosts does not work (IMEX)", "主机间的 NVLink 域不可用（IMEX）"},
     {"On GB200-like racks NCCL found a multi-node NVLink domain that does not answer: the IMEX service is down or its node list differs.",
      "在 GB200 一类机柜上，NCCL 发现多机 NVLink 域不可用：IMEX 服务未运行或节点列表不一致。"},
     {"$ nvidia-imex-ctl -N\nTo go on without it:\n$ phalanx run --env NCCL_MNNVL_ENABLE=0 …",
      "$ nvidia-imex-ctl -N\n暂时绕过：\n$ phalanx run --env NCCL_MNNVL_ENABLE=0 …"},
     "NCCL User Guide, Troubleshooting"},
    {"NCCL-CUMEM-HOST",
     {"NCCL could not make its shared buffers", "NCCL 无法建立共享缓冲区"},
     {"In a container: /sys is not mounted, /dev/shm is small or not shared, or the capability for NUMA is missing (NCCL 2.24 and later).",
      "容器中：/sys 未挂载、/dev/shm 太小或未共享，或缺少 NUMA 所需的权限（NCCL 2.24 起）。"},
     {"$ docker run --ipc=host --cap-add SYS_NICE …\n$ phalanx run --env NCCL_CUMEM_HOST_ENABLE=0 …",
      "$ docker run --ipc=host --cap-add SYS_NICE …\n$ phalanx run --env NCCL_CUMEM_HOST_ENABLE=0 …"},
     "NCCL User Guide, Troubleshooting"},
    {"NCCL-PLUGIN",
     {"NCCL's network plugin does not work here", "NCCL 的网络插件在这里不可用"},
     {"A plugin (aws-ofi-nccl, a vendor's) was found and cannot be used: built for a newer C library, or without its hardware. NCCL falls "
      "back to sockets or ends.",
      "找到了插件（aws-ofi-nccl 或厂商插件）却无法使用：为更新的 C 库构建，或缺少相应硬件。NCCL 会退回 socket 或直接结束。"},
     {"Install the plugin for this system, or leave it out:\n$ phalanx run --env NCCL_NET_PLUGIN=none …",
      "安装适合本系统的插件，或不使用它：\n$ phalanx run --env NCCL_NET_PLUGIN=none …"},
     "NCCL User Guide, NCCL_NET_PLUGIN"},
};

}  // namespace

std::span<const Cause> log_network_causes() { return kLogNetworkCauses; }

}  // namespace diagnosis
