// What phalanx explain says of lines that are not causes.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogOnlyCauses[] = {
    {"LOG-ROOT-ELSEWHERE",
     {"these logs hold only consequences; the cause is elsewhere", "这些日志里只有后果，原因在别处"},
     {"Connections that broke, aborts, signals: all of it follows when a rank ends. The rank that ended first is not in these logs, or it "
      "said nothing.",
      "连接中断、abort、信号：都是某个 rank 结束后的后果。最先结束的 rank 不在这些日志中，或没有任何输出。"},
     {"Give explain the logs of all hosts, and the kernel log of the host whose address the messages name:\n$ phalanx explain <log> "
      "<log>\n$ dmesg -T | phalanx explain -",
      "把所有主机的日志，以及消息中地址所属主机的内核日志交给 explain：\n$ phalanx explain <log> <log>\n$ dmesg -T | phalanx explain -"},
     ""},
    {"LOG-PEER-GONE",
     {"a peer's connection ended", "对端连接中断"},
     {"A consequence: the process at the other end of a connection died or gave up first. Its own log has the cause.",
      "后果：连接另一端的进程先退出或放弃了。原因在它自己的日志里。"},
     {"Find the rank at that address, and read its log.", "找到该地址上的 rank，查看它的日志。"},
     "nccl src/misc/socket.cc; gloo/transport/tcp/pair.cc"},
    {"LOG-NCCL-ABORTED",
     {"a rank ended itself because its communication was lost", "rank 因失去通信而自行结束"},
     {"A consequence: torch's watchdog ends a process whose collective failed or timed out (SIGABRT, -6).",
      "后果：集合通信失败或超时后，torch 的 watchdog 结束进程（SIGABRT，-6）。"},
     {"Look for an earlier error, on any rank.", "查找任一 rank 上更早的错误。"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"},
    {"LOG-STORE-GONE",
     {"the store of rank 0 is gone", "rank 0 的 store 已消失"},
     {"A consequence: the process that serves the store, rank 0 or its agent, ended first.",
      "后果：提供 store 的进程（rank 0 或其 agent）先结束了。"},
     {"Read the log of rank 0.", "查看 rank 0 的日志。"},
     "torch/csrc/distributed/c10d/TCPStore.cpp"},
    {"LOG-TERMINATED",
     {"the launcher ended the other ranks", "启动器结束了其余 rank"},
     {"A consequence: after one rank failed the launcher stops the others (SIGTERM, -15).",
      "后果：一个 rank 失败后，启动器停止其余 rank（SIGTERM，-15）。"},
     {"Look for the rank that failed before.", "查找更早失败的 rank。"},
     "torch/distributed/elastic/multiprocessing/api.py"},
    {"LOG-LAUNCHER-SUMMARY",
     {"a launcher's summary of a failure", "启动器对失败的总结"},
     {"A consequence: torchrun, DeepSpeed or spawn says that a rank failed; torchrun's \"first observed failure\" is only the first on its "
      "own host.",
      "后果：torchrun、DeepSpeed 或 spawn 报告某个 rank 失败；torchrun 的 “first observed failure” 只是本机最先的。"},
     {"Read what that rank said.", "查看该 rank 的输出。"},
     "torch/distributed/elastic/multiprocessing/errors"},
    {"LOG-HARMLESS",
     {"a line that looks like a fault and is none", "看似故障、实则无害的输出"},
     {"Warnings of optional parts (plugins, IPv6, defaults) that jobs run well with.",
      "可选部件（插件、IPv6、默认值）的警告，任务照常运行。"},
     {"Nothing.", "无需处理。"},
     ""},
};

}  // namespace

std::span<const Cause> log_only_causes() { return kLogOnlyCauses; }

}  // namespace diagnosis
