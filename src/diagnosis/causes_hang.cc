// Why a run stands still.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kCauses[] = {
    {"HANG-NEVER-ENTERED",
     {"a rank never entered the collective that the others wait in", "某个 rank 没有进入其它 rank 正在等待的集合通信"},
     {"Every rank of a group must call the same collectives the same number of times. One did not come: a DataLoader that waits, a file "
      "on storage that hangs, one batch fewer, an evaluation or a barrier that only some ranks run, an exception that was swallowed. The "
      "others wait until the watchdog's timeout, and their errors say nothing about who it was.",
      "组内每个 rank 必须以相同次数调用相同的集合通信。有一个没有来：DataLoader 在等待、存储挂起、少一个 "
      "batch、只有部分 rank 执行的评估或 barrier、被吞掉的异常。其它 rank "
      "会一直等到 watchdog 超时，而它们的报错并不说明是谁没来。"},
     {"Look at where that rank is, on its host:\n$ py-spy dump --pid PID\nIf ranks have unequal numbers of batches: drop_last=True, or "
      "DistributedSampler.",
      "在该 rank 所在主机上查看它停在哪里：\n$ py-spy dump --pid PID\n如果各 rank 的 batch 数不等：使用 drop_last=True 或 "
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
};

}  // namespace

std::span<const Cause> hang_causes() { return kCauses; }

}  // namespace diagnosis
