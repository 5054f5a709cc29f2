// What NCCL's own log and its RAS service tell.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kNcclCauses[] = {
    {"NCCL-INIT-MISSING",
     {"ranks are missing while NCCL starts", "NCCL 初始化时缺少部分 rank"},
     {"NCCL's start waits until all ranks of a communicator have met at its root. Fewer came than it has: a rank died or is stuck before "
      "it, was never started, was started with another world size, or cannot reach the root.",
      "NCCL 初始化会一直等到通信域的所有 rank 在 root 处会合。来的比应有的少：有 rank 之前就退出或卡住、从未启动、world size "
      "不一致，或连不到 root。"},
     {"Look at what the missing ranks said last, and whether their hosts reach that of rank 0:\n$ phalanx logs latest --rank <rank>\n$ "
      "phalanx check",
      "查看缺少的 rank 最后的输出，并检查它们的主机能否连到 rank 0：\n$ phalanx logs latest --rank <rank>\n$ phalanx check"},
     "NCCL src/bootstrap.cc, src/init.cc"},
    {"NCCL-INIT-STOPPED",
     {"NCCL's start ended on some ranks and not on others", "部分 rank 完成了 NCCL 初始化，另一些没有"},
     {"All ranks met, then some stopped on the way: while they looked at the machine, exchanged what they found, or connected. Those who "
      "are done wait for them in the first collective.",
      "所有 rank 都已会合，但有的停在途中：探测硬件、交换信息或建立连接时。已完成的 rank 会在第一次集合通信中等待它们。"},
     {"What the stopped ranks say last and the warnings tell where. A path that is blocked shows in the checks:\n$ phalanx check",
      "停住的 rank 的最后一行与警告说明了位置。被阻断的通路可用检查发现：\n$ phalanx check"},
     "NCCL src/init.cc"},
    {"NCCL-CONNECT-STOPPED",
     {"channels between ranks are not connected", "rank 之间的通道没有建立"},
     {"NCCL had chosen its ways and began to connect them; 'Connected all rings' did not come. The ranks meet over one port, the data "
      "goes over others: a firewall, an MTU hole, InfiniBand that does not get through, P2P under an IOMMU, or a peer that never "
      "connects. Since 2.22 this happens at the first collective.",
      "NCCL 已选好通路并开始连接，但没有出现 Connected all "
      "rings。会合与数据走不同的端口：防火墙、MTU 黑洞、InfiniBand 不通、IOMMU 下的 P2P，或对端没有来连接。自 2.22 "
      "起这发生在第一次集合通信时。"},
     {"Test the ways between the hosts that are named:\n$ phalanx check\nand narrow it down with NCCL_IB_DISABLE=1 or NCCL_P2P_DISABLE=1.",
      "测试所指主机之间的通路：\n$ phalanx check\n再用 NCCL_IB_DISABLE=1 或 NCCL_P2P_DISABLE=1 缩小范围。"},
     "NCCL src/transport.cc, src/init.cc"},
    {"NCCL-SOCKET-DESPITE-IB",
     {"NCCL talks over sockets although the host has InfiniBand", "主机有 InfiniBand，NCCL 却走 socket"},
     {"NCCL found InfiniBand or RoCE devices there, or the other hosts use theirs, and the network it took is sockets: many times slower, "
      "and no line of the log marks it as an error. Usual causes: NCCL_IB_DISABLE or NCCL_NET set, libibverbs missing in the image, "
      "/dev/infiniband not passed into the container, no port that is up.",
      "NCCL 在该主机上找到了 InfiniBand/RoCE 设备（或其它主机在用），但最终选择了 "
      "socket：慢很多倍，而日志不会把它标为错误。常见原因：设置了 "
      "NCCL_IB_DISABLE 或 NCCL_NET、镜像里缺少 libibverbs、容器没有 /dev/infiniband、没有 up 的端口。"},
     {"See what that host has, and what it sets:\n$ phalanx check\n$ ibv_devinfo",
      "查看该主机的设备与设置：\n$ phalanx check\n$ ibv_devinfo"},
     "NCCL src/transport/net_ib.cc, src/transport/net_socket.cc"},
    {"NCCL-NO-P2P",
     {"GPUs of one host do not talk to each other directly", "同一主机的 GPU 之间没有直接通信（P2P）"},
     {"Ranks of one host are connected through shared memory or the network, and not by P2P: the data goes through the CPU's memory. That "
      "is normal for GPUs under different CPU sockets and for consumer cards; it is a fault where there is NVLink, or where "
      "NCCL_P2P_DISABLE, an IOMMU, ACS or a container with its own PID namespace prevents it.",
      "同一主机的 rank 通过共享内存或网络相连，没有走 P2P，数据要经过 CPU 内存。对跨 CPU 插槽或消费级显卡这是正常的；若有 NVLink，或是由 "
      "NCCL_P2P_DISABLE、IOMMU、ACS、独立 PID 命名空间的容器造成，则是故障。"},
     {"See how the GPUs are connected, and what prevents it:\n$ nvidia-smi topo -m\n$ phalanx check",
      "查看 GPU 的连接方式与阻碍：\n$ nvidia-smi topo -m\n$ phalanx check"},
     "NCCL src/transport/p2p.cc, src/graph/paths.cc"},
    {"NCCL-LOCAL-NETWORK",
     {"ranks of one host talk through the network", "同一主机的 rank 之间走了网络"},
     {"Neither P2P nor shared memory connects them: they look to NCCL like different machines (hostnames, boot ids, or a /dev/shm that "
      "is not shared: one container per rank), or both are switched off.",
      "P2P 与共享内存都没有使用：在 NCCL 看来它们是不同的机器（主机名、boot id 或 /dev/shm 不共享，例如每个 rank "
      "一个容器），或二者都被关闭。"},
     {"Run the ranks of a host in one container with a shared /dev/shm, and do not set NCCL_SHM_DISABLE:\n$ docker run --ipc=host …",
      "让同一主机的 rank 在一个共享 /dev/shm 的容器里运行，且不要设置 NCCL_SHM_DISABLE：\n$ docker run --ipc=host …"},
     "NCCL src/transport/shm.cc, src/misc/utils.cc"},
    {"NCCL-NO-GDR",
     {"InfiniBand is used without GPUDirect RDMA", "使用 InfiniBand 但没有 GPUDirect RDMA"},
     {"The data makes a detour through the CPU's memory on one host and not on another, or NCCL says that a NIC cannot reach a GPU's "
      "memory: nvidia_peermem is not loaded, DMA-BUF is not available, or NIC and GPU are too far apart for NCCL_NET_GDR_LEVEL.",
      "数据在某台主机上绕经 CPU 内存（其它主机没有），或 NCCL 表示网卡无法访问 GPU 显存：没有加载 nvidia_peermem、没有 "
      "DMA-BUF，或网卡与 GPU 相距超过 NCCL_NET_GDR_LEVEL。"},
     {"$ modprobe nvidia_peermem\n$ nvidia-smi topo -m", "$ modprobe nvidia_peermem\n$ nvidia-smi topo -m"},
     "NCCL src/transport/net.cc, src/graph/paths.cc"},
    {"NCCL-INTERFACES-DIFFER",
     {"ranks met over interfaces of different networks", "各 rank 使用了不同网络的网卡会合"},
     {"NCCL says which interface it took on each host. They differ in name and in network: one host took another NIC, a bridge of docker, "
      "or the management network. It may hang, or be slow.",
      "NCCL 会说明每台主机选用的网卡。它们的名字与网段不同：某台主机选了另一块网卡、docker 网桥或管理网。可能卡住，也可能变慢。"},
     {"Name the interfaces, or let us choose:\n$ phalanx run --env NCCL_SOCKET_IFNAME==<interface> …",
      "指定网卡，或让我们选择：\n$ phalanx run --env NCCL_SOCKET_IFNAME==<interface> …"},
     "NCCL src/bootstrap.cc, src/misc/socket.cc"},
    {"NCCL-CHANNELS-DIFFER",
     {"ranks have built different numbers of channels", "各 rank 建立的通道数不同"},
     {"All ranks of a communicator must come to the same number of channels. Where they differ, versions or settings of NCCL differ "
      "between the hosts, and the first collective hangs or crashes.",
      "同一通信域的所有 rank 必须得到相同的通道数。不同说明各主机的 NCCL 版本或设置不同，第一次集合通信会卡死或崩溃。"},
     {"Compare versions and NCCL_ variables of the hosts:\n$ phalanx check", "比较各主机的版本与 NCCL_ 变量：\n$ phalanx check"},
     "NCCL src/init.cc, src/graph/connect.cc"},
    {"NCCL-RANK-SILENT",
     {"a rank's process does not answer NCCL", "某个 rank 的进程没有应答 NCCL"},
     {"NCCL's threads in all processes watch each other (RAS). One process does not answer them: it was stopped or ended, its host is "
      "gone, or the network to it is cut. The others wait for it.",
      "各进程中的 NCCL 线程互相监视（RAS）。有一个进程不应答：已被停止或退出、主机已失去，或网络中断。其它 rank 都在等它。"},
     {"Look at that process on its host:\n$ ps -o pid,stat,wchan:32,cmd -p <pid>",
      "在该主机上查看这个进程：\n$ ps -o pid,stat,wchan:32,cmd -p <pid>"},
     "NCCL docs, troubleshooting/ras"},
    {"NCCL-RANK-ERROR",
     {"NCCL reports an error on a rank", "NCCL 报告某个 rank 出错"},
     {"A communicator is in an error state on the rank that is named; the others wait for it, or fail after it.",
      "所指 rank 上的通信域处于错误状态；其它 rank 会等待它，或在它之后失败。"},
     {"Read that rank's log for the first NCCL WARN:\n$ phalanx logs latest --rank <rank>",
      "在该 rank 的日志里找第一条 NCCL WARN：\n$ phalanx logs latest --rank <rank>"},
     "NCCL src/ras/client_support.cc"},
};

}  // namespace

std::span<const Cause> nccl_causes() { return kNcclCauses; }

}  // namespace diagnosis
