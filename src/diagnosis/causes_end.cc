// How ranks and hosts end.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kEndCauses[] = {
    {"RUN-EXIT-CODE",
     {"a rank ended with an exit code of its own", "某个 rank 以自己的退出码结束"},
     {"The program decided to end, with a code other than 0, before any other rank failed. What it said last is the best evidence.",
      "程序自己决定以非 0 退出码结束，并且早于其它 rank。它最后的输出就是最好的证据。"},
     {"Read what the rank said last:\n$ phalanx logs latest --rank <rank>",
      "查看该 rank 最后的输出：\n$ phalanx logs latest --rank <rank>"},
     ""},
    {"RUN-EXCEPTION",
     {"a rank ended with an exception nobody caught", "某个 rank 因未捕获的异常而结束"},
     {"A Python traceback, or a C++ 'terminate called after throwing', ended the rank before any other. Ranks that fail afterwards with "
      "'Connection closed by peer', 'Connection reset' or an NCCL remote error are its victims, not causes.",
      "一个 Python traceback（或 C++ 的 terminate called after throwing）最先结束了该 rank。之后报 Connection closed by peer、Connection "
      "reset "
      "或 NCCL remote error 的 rank 都是受害者，不是原因。"},
     {"Fix what the last line of the traceback names; all of it is in the rank's log:\n$ phalanx why latest",
      "修复 traceback 最后一行所说的问题；完整内容在该 rank 的日志里：\n$ phalanx why latest"},
     "CPython Lib/traceback.py"},
    {"RUN-SEGFAULT",
     {"a rank crashed with a segmentation fault", "某个 rank 发生段错误"},
     {"Native code touched memory that is not its own (SIGSEGV, exit code 139 or -11): two builds of one library in a process, a stack "
      "that is too small, or a bug in an extension. Python prints no traceback for it.",
      "本地代码访问了非法内存（SIGSEGV，退出码 139 或 -11）：同一进程里有同一库的两个版本、栈太小，或扩展模块的 bug。Python 不会为它打印 "
      "traceback。"},
     {"Make Python print where it was:\n$ phalanx run --env PYTHONFAULTHANDLER=1 …",
      "让 Python 打印出错位置：\n$ phalanx run --env PYTHONFAULTHANDLER=1 …"},
     "signal(7)"},
    {"RUN-ABORTED",
     {"a rank ended itself with abort", "某个 rank 调用 abort 结束了自己"},
     {"SIGABRT (134 or -6): an assertion, a C++ exception nobody caught, or a watchdog of PyTorch that gave up on a collective. The "
      "watchdog's abort is usually secondary: another rank had stopped coming.",
      "SIGABRT（134 或 -6）：断言失败、未捕获的 C++ 异常，或 PyTorch 的 watchdog 放弃了某个集合通信。watchdog 的 abort "
      "通常是次生的：另一个 rank "
      "早已不再参与。"},
     {"The lines before the abort say which:\n$ phalanx why latest", "abort 之前的输出会说明是哪一种：\n$ phalanx why latest"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"},
    {"RUN-BUS-ERROR",
     {"a rank crashed with a bus error", "某个 rank 发生总线错误"},
     {"SIGBUS (135 or -7): a page of a mapped file could not be had. Nearly always /dev/shm is full (DataLoader workers and NCCL map files "
      "there); else a mapped data file was cut shorter while in use, or memory failed.",
      "SIGBUS（135 或 -7）：映射文件的某一页取不到。几乎总是 /dev/shm 满了（DataLoader worker 与 NCCL "
      "都在那里映射文件）；否则是数据文件在使用中被截短，或内存硬件故障。"},
     {"Look at the room there, and give it more:\n$ df -h /dev/shm\n$ mount -o remount,size=16G /dev/shm",
      "查看剩余空间并加大：\n$ df -h /dev/shm\n$ mount -o remount,size=16G /dev/shm"},
     "mmap(2)"},
    {"RUN-KILLED",
     {"a rank was killed from outside", "某个 rank 被外部杀死"},
     {"SIGKILL (137 or -9), and neither the kernel log nor the cgroup tells of a shortage of memory: a person, a scheduler, a memory "
      "daemon in user space (earlyoom, systemd-oomd), or the end of a container did it.",
      "SIGKILL（137 或 -9），而内核日志与 cgroup "
      "都没有内存不足的记录：是有人、调度系统、用户态内存守护进程（earlyoom、systemd-oomd）或容器退出所为。"},
     {"Ask the machine:\n$ journalctl -k --since -10min\n$ journalctl -u earlyoom -u systemd-oomd --since -10min",
      "查看该机器：\n$ journalctl -k --since -10min\n$ journalctl -u earlyoom -u systemd-oomd --since -10min"},
     "signal(7)"},
    {"RUN-TERMINATED",
     {"a rank was told to end from outside", "某个 rank 被外部要求结束"},
     {"SIGTERM, SIGINT or SIGHUP that we did not send: a scheduler's time limit or preemption, a person, or the end of a session.",
      "不是由我们发出的 SIGTERM、SIGINT 或 SIGHUP：调度系统的时限或抢占、有人操作，或会话结束。"},
     {"Find who ends jobs on that host: the scheduler's log, or\n$ journalctl --since -10min",
      "查出谁在该主机上结束任务：调度系统日志，或\n$ journalctl --since -10min"},
     "signal(7)"},
    {"RUN-OOM-HOST",
     {"the machine ran out of memory and the kernel killed a rank", "主机内存耗尽，内核杀死了某个 rank"},
     {"The kernel's out-of-memory killer ended the process: SIGKILL, no traceback, a line 'Out of memory: Killed process' in the kernel "
      "log. Every rank loads its own copy of the model, and every DataLoader worker its copy of the data set's Python objects.",
      "内核的 OOM killer 结束了该进程：SIGKILL、没有 traceback，内核日志里有 Out of memory: Killed process。每个 rank 各加载一份模型，每个 "
      "DataLoader "
      "worker 各复制一份数据集对象。"},
     {"Fewer DataLoader workers, low_cpu_mem_usage=True (or zero3_init_flag) when loading, fewer ranks per host:\n$ free -m",
      "减少 DataLoader worker，加载时使用 low_cpu_mem_usage=True（或 zero3_init_flag），减少每台主机的 rank：\n$ free -m"},
     "Linux mm/oom_kill.c"},
    {"RUN-OOM-CGROUP",
     {"the memory limit of its cgroup killed a rank", "cgroup 的内存上限杀死了某个 rank"},
     {"The process, with others of its cgroup (a container, a Slurm job, a systemd slice), needed more than the limit: SIGKILL, no "
      "traceback, 'Memory cgroup out of memory' in the kernel log, oom_kill counted in memory.events.",
      "该进程与同一 cgroup（容器、Slurm 作业、systemd slice）中的其它进程超过了内存上限：SIGKILL、没有 traceback，内核日志有 Memory cgroup "
      "out of "
      "memory，memory.events 的 oom_kill 计数增加。"},
     {"Ask for more memory (docker --memory, Slurm --mem), or need less: fewer DataLoader workers, fewer ranks per host.",
      "申请更多内存（docker --memory、Slurm --mem），或减少用量：更少的 DataLoader worker、更少的 rank。"},
     "Linux Documentation/admin-guide/cgroup-v2.rst, memory.events"},
    {"RUN-LEFT-EARLY",
     {"a rank ended without an error while others still worked", "某个 rank 无错误地提前结束，而其它 rank 仍在工作"},
     {"A rank that returns 0 early leaves the others waiting in the next collective, or breaks their connections: one batch fewer, an "
      "early "
      "stop that only one rank takes, an exception swallowed on one rank, sys.exit() under 'if rank == 0'.",
      "提前以 0 退出的 rank 会让其它 rank 卡在下一个集合通信里，或断开它们的连接：少一个 batch、只有一个 rank 早停、某个 rank "
      "吞掉了异常、在 if rank "
      "== 0 里调用了 sys.exit()。"},
     {"Let every rank do the same number of steps: DistributedSampler or drop_last=True, and broadcast the decision to stop.",
      "让每个 rank 的步数相同：使用 DistributedSampler 或 drop_last=True，并广播早停的决定。"},
     "docs.pytorch.org, torch.distributed.algorithms.join"},
    {"HOST-LOST",
     {"a host was lost while ranks ran on it", "运行期间失去了某台主机"},
     {"Nothing was heard from the host's agent for seconds, or its connection broke: power, kernel, network, or the machine stands still. "
      "Ranks on it end by themselves once they cannot reach the launcher either.",
      "数秒内没有收到该主机 agent 的任何消息，或连接已断开：断电、内核崩溃、网络中断，或整机停滞。那里的 rank "
      "在同样联系不上启动器后会自行结束。"},
     {"See whether it is there:\n$ ping -c 3 <host>\nGo on without it: --max-restarts with --spares or --nodes MIN:MAX.",
      "查看主机是否还在：\n$ ping -c 3 <host>\n要在没有它的情况下继续：--max-restarts 配合 --spares 或 --nodes MIN:MAX。"},
     ""},
    {"HOST-AGENT-KILLED",
     {"the agent on a host was killed", "某台主机上的 agent 被杀死"},
     {"phalanx-agent ended although the run had not: a person or a memory killer ended it. Its guard has ended all ranks there.",
      "运行尚未结束而 phalanx-agent 已经退出：有人或内存守护进程杀死了它。它的 guard 已结束那里的所有 rank。"},
     {"Look for who did it:\n$ journalctl -k --since -10min", "查看是谁所为：\n$ journalctl -k --since -10min"},
     ""},
};

}  // namespace

std::span<const Cause> end_causes() { return kEndCauses; }

}  // namespace diagnosis
