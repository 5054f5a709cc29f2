// Why ranks do not meet.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogMeetingCauses[] = {
    {"RDZV-MASTER-SILENT",
     {"a rank could not reach the master", "rank 连不上主节点"},
     {"Nothing answered at MASTER_ADDR:MASTER_PORT: rank 0 did not start, ended at once, listens on another address, or a firewall drops "
      "the packets. If rank 0 has a log, look there first.",
      "MASTER_ADDR:MASTER_PORT 无应答：rank 0 没有启动、立即退出、监听在别的地址，或防火墙丢包。若有 rank 0 的日志，请先看它。"},
     {"$ phalanx check\nOn the host of rank 0:\n$ ss -ltnp", "$ phalanx check\n在 rank 0 的主机上：\n$ ss -ltnp"},
     "torch/csrc/distributed/c10d/socket.cpp"},
    {"RDZV-RANKS-MISSING",
     {"not all ranks came to the meeting", "没有等到所有 rank"},
     {"The store waited for more ranks than came: a host was not started, has another number of processes, another port, or its start is "
      "slower than the timeout.",
      "store 等待的 rank 多于到来的：某台主机没有启动、进程数不同、端口不同，或启动慢于超时。"},
     {"Compare the launch of every host; phalanx starts all of them alike:\n$ phalanx run -H <hosts> -- python <script>",
      "比较每台主机的启动方式；phalanx 会以相同方式启动全部主机：\n$ phalanx run -H <hosts> -- python <script>"},
     "torch/csrc/distributed/c10d/TCPStore.cpp"},
    {"RDZV-TIMEOUT",
     {"torchrun's meeting of hosts timed out", "torchrun 的主机会合超时"},
     {"The agents did not all join one rendezvous: other --rdzv-id, --rdzv-endpoint or --nnodes on a host, or the endpoint cannot be "
      "reached.",
      "各 agent 没有加入同一个 rendezvous：某主机的 --rdzv-id、--rdzv-endpoint 或 --nnodes 不同，或 endpoint 不可达。"},
     {"$ phalanx check\n$ phalanx run -H <hosts> -- python <script>", "$ phalanx check\n$ phalanx run -H <hosts> -- python <script>"},
     "torch/distributed/elastic/rendezvous"},
    {"RDZV-NODE-DROPPED",
     {"torchrun dropped a host for want of heartbeats", "torchrun 因收不到心跳而剔除主机"},
     {"c10d's rendezvous compares wall clocks: clocks more than 15 s apart, a host that stood still, or a network that was cut.",
      "c10d rendezvous 比较各主机的时钟：时钟相差超过 15 秒、主机停滞或网络中断。"},
     {"$ phalanx check --only TIME-\n$ chronyc tracking", "$ phalanx check --only TIME-\n$ chronyc tracking"},
     "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py"},
    {"RDZV-RANK-TWICE",
     {"two processes have the same rank", "两个进程使用同一个 rank"},
     {"NODE_RANK or machine_rank was copied from one host to the other, or two jobs use one port.",
      "NODE_RANK 或 machine_rank 从一台主机复制到另一台，或两个任务使用同一端口。"},
     {"Give every host its own rank, or let phalanx number them:\n$ phalanx run -H <hosts> -- python <script>",
      "为每台主机设置不同的 rank，或让 phalanx 编号：\n$ phalanx run -H <hosts> -- python <script>"},
     "nccl src/bootstrap.cc"},
    {"RDZV-VARIABLE-MISSING",
     {"a variable that torch.distributed needs is not set", "缺少 torch.distributed 所需的变量"},
     {"The script was started without a launcher: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR or MASTER_PORT is missing.",
      "脚本没有通过启动器启动：缺少 RANK、WORLD_SIZE、LOCAL_RANK、MASTER_ADDR 或 MASTER_PORT。"},
     {"$ phalanx run -- python <script>", "$ phalanx run -- python <script>"},
     "torch/distributed/rendezvous.py"},
    {"RDZV-SSH",
     {"a host cannot be reached by ssh", "无法通过 ssh 登录主机"},
     {"No key, an unknown host key, or no sshd: launchers log in without a password, or not at all.",
      "没有密钥、未知的主机密钥或没有 sshd：启动器只能免密登录。"},
     {"$ ssh -o BatchMode=yes <host> true\n$ ssh-copy-id <host>", "$ ssh -o BatchMode=yes <host> true\n$ ssh-copy-id <host>"},
     "ssh(1); deepspeed/launcher/runner.py"},
    {"RDZV-LAUNCHER-MISSING",
     {"the program a launcher works through is missing", "启动器所依赖的程序缺失"},
     {"DeepSpeed starts other hosts through pdsh, mpirun or srun, and that program is not installed.",
      "DeepSpeed 通过 pdsh、mpirun 或 srun 启动其它主机，而该程序没有安装。"},
     {"phalanx needs none of them:\n$ phalanx run --hostfile <hostfile> -- python <script>",
      "phalanx 不需要它们：\n$ phalanx run --hostfile <hostfile> -- python <script>"},
     "deepspeed/launcher/multinode_runner.py"},
    {"CMD-ARGUMENTS",
     {"the program refuses its arguments", "程序拒绝了命令行参数"},
     {"An argument that the script does not know, one that is missing, or a value of the wrong kind. It ends before anything is "
      "distributed.",
      "脚本不认识的参数、缺少的参数，或类型错误的值。程序在分布式开始之前就退出了。"},
     {"Read what the program offers:\n$ python <script> --help", "查看程序支持的参数：\n$ python <script> --help"},
     "CPython Lib/argparse.py"},
    {"CMD-DEEPSPEED-CONFIG",
     {"DeepSpeed refuses its configuration", "DeepSpeed 拒绝了配置"},
     {"A value of the DeepSpeed configuration contradicts another, the trainer's arguments, or the way the model is loaded. The message "
      "names it.",
      "DeepSpeed 配置中的某个值与其它值、trainer 参数或模型加载方式矛盾。消息中有说明。"},
     {"Set the doubtful values to \"auto\" where a trainer fills them in.", "有 trainer 填写时，把有疑问的值设为 \"auto\"。"},
     "deepspeed/runtime/config.py; transformers/integrations/deepspeed.py"},
};

}  // namespace

std::span<const Cause> log_meeting_causes() { return kLogMeetingCauses; }

}  // namespace diagnosis
