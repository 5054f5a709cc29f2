// Why a run stands still.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kHangCauses[] = {
    {"HANG-NEVER-ENTERED",
     {"a rank never entered the collective that the others wait in", "某个 rank 没有进入其它 rank 正在等待的集合通信"},
     {"Every rank of a group must call the same collectives the same number of times. One did not come: a DataLoader that waits, a file "
      "on storage that hangs, one batch fewer, an evaluation or a barrier that only some ranks run, an exception that was swallowed. The "
      "others wait until the watchdog's timeout, and their errors say nothing about who it was.",
      "组内每个 rank 必须以相同次数调用相同的集合通信。有一个没有来：DataLoader 在等待、存储挂起、少一个 "
      "batch、只有部分 rank 执行的评估或 barrier、被吞掉的异常。其它 rank "
      "会一直等到 watchdog 超时，而它们的报错并不说明是谁没来。"},
     {"Look at where that rank is, on its host:\n$ py-spy dump --pid <pid>\nIf ranks have unequal numbers of batches: drop_last=True, or "
      "DistributedSampler.",
      "在该 rank 所在主机上查看它停在哪里：\n$ py-spy dump --pid <pid>\n如果各 rank 的 batch 数不等：使用 drop_last=True 或 "
      "DistributedSampler。"},
     "torch/csrc/distributed/c10d/FlightRecorder.hpp; NCCL src/ras/client_support.cc"},
    {"HANG-MISMATCH",
     {"ranks wait in different collectives", "各 rank 在不同的集合通信中等待"},
     {"All ranks came to the same place in the sequence, but not with the same operation, size or type: a branch that depends on the rank "
      "or on the data, parameters that differ, a last batch of another size.",
      "各 rank 到达了序列的同一位置，但操作、大小或类型不同：依赖于 rank 或数据的分支、参数不一致、最后一个 batch 大小不同。"},
     {"Let torch check every collective, and it stops at the first that differs:\n$ phalanx run --env TORCH_DISTRIBUTED_DEBUG=DETAIL …",
      "让 torch 检查每一次集合通信，它会在第一次不一致时停下：\n$ phalanx run --env TORCH_DISTRIBUTED_DEBUG=DETAIL …"},
     "torch/distributed/flight_recorder; torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp"},
    {"HANG-TRANSPORT",
     {"all ranks are in the same collective, and the data does not move", "所有 rank 都在同一次集合通信中，但数据没有移动"},
     {"The program is right; the way between GPUs is not: a link or a NIC that broke, a firewall or an MTU hole on the data path, "
      "GPUDirect or P2P that does not work on this machine, a GPU whose kernel never ends.",
      "程序没有问题，GPU 之间的通路有问题：链路或网卡故障、数据通路上的防火墙或 MTU 黑洞、本机 GPUDirect 或 P2P 不可用、某个 GPU 的 kernel "
      "永不结束。"},
     {"Test the ways between the hosts, and look for Xid and link errors:\n$ phalanx check\n$ dmesg | grep -iE 'xid|mlx5|link'",
      "测试主机之间的通路，并查找 Xid 与链路错误：\n$ phalanx check\n$ dmesg | grep -iE 'xid|mlx5|link'"},
     "torch/csrc/distributed/c10d/FlightRecorder.hpp; NCCL docs, troubleshooting"},
    {"HANG-CIRCULAR",
     {"ranks wait for each other in a circle", "各 rank 互相等待，形成环"},
     {"Rank A waits in one operation for rank B, and B waits in another for A: collectives of two process groups called in different "
      "orders, or sends and receives of which each side does its own first (pipeline parallelism).",
      "rank A 在一个操作里等待 rank B，而 B 在另一个操作里等待 A：两个进程组的集合通信调用顺序不同，或双方都先执行自己的 send/recv"
      "（流水线并行）。"},
     {"Call the operations of all groups in one order on every rank; hand sends and receives over together with batch_isend_irecv. Where "
      "two groups run on two streams:\n$ phalanx run --env NCCL_LAUNCH_ORDER_IMPLICIT=1 …",
      "在每个 rank 上以同一顺序调用各组的操作；用 batch_isend_irecv 一起提交 send 与 recv。若两个组在两个 stream 上运行：\n"
      "$ phalanx run --env NCCL_LAUNCH_ORDER_IMPLICIT=1 …"},
     "NCCL docs, usage/communicators; torch.distributed.batch_isend_irecv"},
    {"HANG-STOPPED",
     {"a process of a rank is stopped or frozen", "某个 rank 的进程被停止或冻结"},
     {"The kernel does not let it run: SIGSTOP, a background process that used the terminal (SIGTTIN, SIGTTOU), or a frozen cgroup (docker "
      "pause, a checkpointing tool, a scheduler that suspends). The others wait in their next collective; their connections stay open.",
      "内核不让它运行：SIGSTOP、后台进程使用终端（SIGTTIN、SIGTTOU），或 cgroup 被冻结（docker "
      "pause、检查点工具、调度器挂起）。其它 rank 停在下一次集合通信，连接仍保持打开。"},
     {"Let it go on, on its host:\n$ kill -CONT <pid>\nA frozen cgroup:\n$ echo THAWED > <folder>/freezer.state   (version 2: echo 0 > "
      "<folder>/cgroup.freeze)",
      "在其主机上让它继续：\n$ kill -CONT <pid>\n被冻结的 cgroup：\n$ echo THAWED > <folder>/freezer.state   （v2：echo 0 > "
      "<folder>/cgroup.freeze）"},
     "signal(7); cgroups(7)"},
    {"HANG-TRACED",
     {"a rank is held by a debugger", "某个 rank 被调试器停住"},
     {"gdb, strace or another tracer has stopped it (state t in /proc), for instance a debugger that somebody left open.",
      "gdb、strace 等跟踪器停住了它（/proc 中状态为 t），例如有人忘记退出的调试器。"},
     {"End the tracer, or let it continue the process:\n$ ps -o pid,user,args -p <pid>",
      "结束跟踪器，或让它继续该进程：\n$ ps -o pid,user,args -p <pid>"},
     "ptrace(2)"},
    {"HANG-DISK",
     {"a rank waits for storage that does not answer", "某个 rank 在等待没有应答的存储"},
     {"A process of the rank sleeps in the kernel on a file: a network file system whose server is gone, a FUSE daemon that hangs, a disk "
      "that fails. It cannot be interrupted; often not even killed.",
      "该 rank 的某个进程在内核中等待文件：网络文件系统的服务器失联、FUSE 守护进程卡住，或磁盘故障。它无法被中断，常常也无法被杀死。"},
     {"Look at the mount and its server:\n$ mount | grep <path>\n$ timeout 5 stat -f <path>\n$ dmesg | grep -iE 'nfs|fuse|I/O "
      "error|blocked'",
      "检查该挂载点及其服务器：\n$ mount | grep <path>\n$ timeout 5 stat -f <path>\n$ dmesg | grep -iE 'nfs|fuse|I/O error|blocked'"},
     "proc(5); Documentation/filesystems/fuse.rst"},
    {"HANG-SWAPPING",
     {"a rank lives on swap", "某个 rank 的内存在交换区"},
     {"Its memory was moved to disk, and every step reads it back page by page: hundreds of times slower, and all ranks wait for it.",
      "它的内存被换出到磁盘，每一步都要逐页读回：慢数百倍，所有 rank 都在等它。"},
     {"Fewer ranks or DataLoader workers on that host, or memory for them; see who uses it:\n$ free -m\n$ vmstat 1 5",
      "减少该主机上的 rank 或 DataLoader worker，或增加内存；查看占用：\n$ free -m\n$ vmstat 1 5"},
     "proc(5), VmSwap"},
    {"HANG-LINK",
     {"a connection between two ranks does not get through any more", "两个 rank 之间的连接不再畅通"},
     {"TCP has sent data again and again and nobody acknowledges it: a cable, a switch, a firewall that forgot the connection, an address "
      "that moved. Neither side is told; PyTorch waits for its timeout, 10 or 30 minutes.",
      "TCP 反复重传而无人确认：网线、交换机、忘记了该连接的防火墙，或地址已漂移。两端都不会得到通知；PyTorch 会一直等到 10 或 30 "
      "分钟的超时。"},
     {"Test the way between the two hosts:\n$ phalanx check <hosts>\n$ ip -s link",
      "测试两台主机之间的通路：\n$ phalanx check <hosts>\n$ ip -s link"},
     "tcp(7), tcp_retries2; RFC 6298"},
    {"HANG-PEER-STOPPED",
     {"a rank does not read what the others send it", "某个 rank 不再读取其它 rank 发来的数据"},
     {"Its receive window is shut: the process is there, its kernel answers, but the program takes nothing from the socket.",
      "它的接收窗口已关闭：进程还在，内核也应答，但程序不再从 socket 读取数据。"},
     {"Look at where that rank is:\n$ py-spy dump --pid <pid>", "查看该 rank 停在哪里：\n$ py-spy dump --pid <pid>"},
     "RFC 9293, 3.8.6.1"},
    {"HANG-DEADLOCK-LOCAL",
     {"a rank waits for a lock or a queue of its own program", "某个 rank 在等待自身程序中的锁或队列"},
     {"Nothing outside holds it: a lock taken twice, two threads that wait for each other, a queue that nobody fills, a thread that keeps "
      "Python's interpreter lock. The other ranks wait in the collective it never comes to.",
      "没有外部原因：同一把锁取了两次、两个线程互相等待、没有人填充的队列，或某线程一直占有 Python 解释器锁。其它 rank "
      "停在它永远不会到达的集合通信里。"},
     {"See who holds it:\n$ py-spy dump --pid <pid>\nor start with the hook, and it is told with the verdict:\n$ phalanx run --python-hook "
      "…",
      "查看锁在谁手里：\n$ py-spy dump --pid <pid>\n或带上 hook 启动，判断结果里会直接给出：\n$ phalanx run --python-hook …"},
     "futex(2)"},
    {"HANG-LOADER",
     {"a rank waits for a process it has started", "某个 rank 在等待它启动的进程"},
     {"Usually a DataLoader worker that hangs: on a file, on a lock that was held when it was forked, on a download. Or a program started "
      "from the training script that does not end.",
      "通常是卡住的 DataLoader worker：卡在文件、fork 时已被占有的锁，或下载上。也可能是训练脚本启动的程序没有结束。"},
     {"Look at the worker; try without workers:\n$ py-spy dump --pid <pid>\nDataLoader(num_workers=0, …), or "
      "multiprocessing_context='forkserver'",
      "查看该 worker；尝试不使用 worker：\n$ py-spy dump --pid <pid>\nDataLoader(num_workers=0, …)，或 "
      "multiprocessing_context='forkserver'"},
     "docs.pytorch.org, torch.utils.data"},
    {"HANG-CONNECT",
     {"a rank waits for a connection that nobody answers", "某个 rank 在等待没有应答的连接"},
     {"It sends SYN and hears nothing: a firewall drops it, the address is not routed, or the other side is gone. The address tells "
      "whether "
      "it is another rank or something outside (a metrics server, a download).",
      "它发送 SYN 而没有任何回应：被防火墙丢弃、地址不可路由，或对端已不在。地址能说明它连的是另一个 "
      "rank，还是外部服务（指标服务器、下载）。"},
     {"Try the address from that host:\n$ nc -vz -w 3 <address> <port>", "在该主机上尝试该地址：\n$ nc -vz -w 3 <address> <port>"},
     "tcp(7), tcp_syn_retries"},
    {"HANG-UNKNOWN",
     {"nothing moves, and no rank stands out", "没有任何进展，但没有哪个 rank 与众不同"},
     {"What can be seen from outside does not tell who holds the others up; the verdict says which evidence is missing.",
      "从外部能看到的信息不足以判断是谁拖住了其它 rank；结论中会说明还缺少哪些证据。"},
     {"Run it so that more can be seen:\n$ phalanx run --python-hook --env TORCH_DISTRIBUTED_DEBUG=DETAIL …",
      "让更多信息可见地再运行一次：\n$ phalanx run --python-hook --env TORCH_DISTRIBUTED_DEBUG=DETAIL …"},
     ""},
};

}  // namespace

std::span<const Cause> hang_causes() { return kHangCauses; }

}  // namespace diagnosis
