// Why a run is slower than it need be, told while it runs.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kSlowCauses[] = {
    {"SLOW-CPU-LIMIT",
     {"the CPU limit of its cgroup slows a rank down", "cgroup 的 CPU 限额拖慢了某个 rank"},
     {"A container or a scheduler gives the rank less CPU time than it wants; every step of all ranks takes as long as this one's. GPUs "
      "starve behind a data loader that is held back.",
      "容器或调度器给该 rank 的 CPU 时间不足；所有 rank 的每一步都要等它。被限制的数据加载也会让 GPU 空等。"},
     {"Ask for more CPUs (docker --cpus, Slurm --cpus-per-task), or start fewer threads and workers:\n$ phalanx run --env "
      "OMP_NUM_THREADS=1 …",
      "申请更多 CPU（docker --cpus、Slurm --cpus-per-task），或减少线程与 worker：\n$ phalanx run --env OMP_NUM_THREADS=1 …"},
     "cgroups(7), cpu.stat"},
    {"SLOW-RANK",
     {"one rank computes while all others wait for it", "一个 rank 在计算，其它 rank 都在等它"},
     {"The run goes at the pace of its slowest rank. It has more to do than the others (a larger part of the data, evaluation or logging "
      "that "
      "only it does), or its machine is slower: heat, a power limit, another job on it.",
      "整个任务以最慢的 rank "
      "的速度前进。它要做的比别人多（更大的数据份额、只由它执行的评估或日志），或它所在的机器更慢：过热、功率限制、有其它任务。"},
     {"See what it does, and what else runs there:\n$ py-spy top --pid <pid>\n$ top -b -n 1 | head -20",
      "查看它在做什么，以及那里还在运行什么：\n$ py-spy top --pid <pid>\n$ top -b -n 1 | head -20"},
     "arXiv:2402.15627 (MegaScale), 5"},
    {"SLOW-GPU-WAITS",
     {"GPUs are in use but draw little power: they wait for communication", "GPU 利用率高而功耗低：它们在等待通信"},
     {"Utilisation counts a kernel that only waits. High use at low power on all GPUs of a host means that they wait for other ranks: a "
      "slow "
      "network (sockets though InfiniBand is there), or a straggler.",
      "利用率会把只在等待的 kernel 也算进去。一台主机的所有 GPU 利用率高而功耗低，说明它们在等待其它 rank：网络太慢（有 InfiniBand 却走 "
      "socket），或有掉队的 rank。"},
     {"See which transport NCCL took, and test the network:\n$ phalanx run --env NCCL_DEBUG=INFO … 2>&1 | phalanx explain -\n$ phalanx "
      "bench fabric",
      "查看 NCCL 选用的传输方式并测试网络：\n$ phalanx run --env NCCL_DEBUG=INFO … 2>&1 | phalanx explain -\n$ phalanx bench fabric"},
     "NVML, nvmlDeviceGetUtilizationRates"},
    {"SLOW-GPU0-MEMORY",
     {"the first GPU of a host holds far more than the others", "主机的第一块 GPU 占用的显存远多于其它"},
     {"Every rank has opened the first GPU (torch.load without map_location, CUDA used before set_device), or nn.DataParallel gathers "
      "outputs "
      "and losses there.",
      "每个 rank 都打开了第一块 GPU（torch.load 未指定 map_location、在 set_device 之前使用 CUDA），或 nn.DataParallel 把输出与 loss "
      "收集到那里。"},
     {"torch.cuda.set_device(local_rank) before anything else; torch.load(…, map_location='cpu'); DistributedDataParallel in place of "
      "DataParallel.",
      "最先调用 torch.cuda.set_device(local_rank)；torch.load(…, map_location='cpu')；用 DistributedDataParallel 代替 DataParallel。"},
     "docs.pytorch.org, notes/cuda"},
};

}  // namespace

std::span<const Cause> slow_causes() { return kSlowCauses; }

}  // namespace diagnosis
