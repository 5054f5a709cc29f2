// What programs do wrong with torch.distributed.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogProgramCauses[] = {
    {"HANG-TIMEOUT",
     {"a collective timed out, and these logs do not tell whose fault it is", "集合通信超时，且这些日志无法判断是谁的问题"},
     {"Ranks waited in a collective until the watchdog gave up. Those that complain are the victims. The culprit is a rank that says "
      "nothing: it died, hangs, or works longer than the timeout (saving, evaluating, tokenizing on rank 0).",
      "rank 在集合通信中一直等到 watchdog 放弃。报错的都是受害者；元凶是没有报错的那个 "
      "rank：它退出了、挂起了，或工作时间超过了超时（保存、评估、只在 rank 0 上分词）。"},
     {"Give explain the logs of all ranks; have torch write what each rank was doing:\n$ phalanx run --env "
      "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 --env TORCH_NCCL_DUMP_ON_TIMEOUT=1 …",
      "把所有 rank 的日志交给 explain；让 torch 记录每个 rank 在做什么：\n$ phalanx run --env TORCH_NCCL_TRACE_BUFFER_SIZE=2000 --env "
      "TORCH_NCCL_DUMP_ON_TIMEOUT=1 …"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"},
    {"HANG-WATCHDOG-STUCK",
     {"a rank's watchdog itself stood still", "rank 的 watchdog 自身停滞"},
     {"The thread that watches collectives made no step: another thread holds Python's lock, a call of CUDA does not return (a GPU that "
      "hangs), or the process was stopped.",
      "监视集合通信的线程没有进展：另一线程占着 GIL、CUDA 调用不返回（GPU 挂起），或进程被暂停。"},
     {"Look at the stacks of that rank, and at the kernel log of its host:\n$ py-spy dump --native --pid <pid>\n$ sudo dmesg -T | grep -i "
      "xid",
      "查看该 rank 的调用栈和其主机的内核日志：\n$ py-spy dump --native --pid <pid>\n$ sudo dmesg -T | grep -i xid"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"},
    {"RUN-DDP-MODEL-DIFFERS",
     {"ranks have different models", "各 rank 的模型不同"},
     {"DDP compares parameters at the start. A rank with \"0 params\" did not answer: that is secondary to an earlier failure. Else the "
      "models are really built differently.",
      "DDP 启动时会比较参数。若某 rank 为 “0 params” 则是它没有应答，属于更早故障的后果；否则模型确实不同。"},
     {"Build the model from the same configuration on every rank; look for an earlier error of the rank that is named.",
      "在每个 rank 上用相同配置构建模型；查看所指 rank 更早的错误。"},
     "torch/csrc/distributed/c10d/reducer.cpp"},
    {"RUN-DDP-UNUSED",
     {"parameters of the model got no gradient", "模型有参数没有得到梯度"},
     {"DDP waits for the gradient of every parameter; those of a branch that was not used never come.",
      "DDP 等待每个参数的梯度；未使用的分支永远不会产生梯度。"},
     {"DistributedDataParallel(model, find_unused_parameters=True), or return only what takes part in the loss.",
      "DistributedDataParallel(model, find_unused_parameters=True)，或只返回参与 loss 的输出。"},
     "torch/csrc/distributed/c10d/reducer.cpp"},
    {"RUN-DDP-TWICE",
     {"a parameter was used twice in one backward pass", "一次反向传播中参数被使用两次"},
     {"Reentrant activation checkpointing, or a module called twice under DDP or ZeRO: the gradient arrives twice.",
      "可重入的激活重计算，或在 DDP、ZeRO 下同一模块被调用两次：梯度会到达两次。"},
     {"gradient_checkpointing_kwargs={\"use_reentrant\": False}, or DDP(static_graph=True).",
      "gradient_checkpointing_kwargs={\"use_reentrant\": False}，或 DDP(static_graph=True)。"},
     "torch/csrc/distributed/c10d/reducer.cpp"},
    {"RUN-NOT-INITIALIZED",
     {"torch.distributed was used before its initialisation", "torch.distributed 尚未初始化就被使用"},
     {"A collective, sampler or wrapper came before init_process_group, or it was initialised twice.",
      "在 init_process_group 之前使用了集合通信、sampler 或包装器，或初始化了两次。"},
     {"Call torch.distributed.init_process_group() once, first of all.", "最先且只调用一次 torch.distributed.init_process_group()。"},
     "torch/distributed/distributed_c10d.py"},
    {"RUN-FSDP-USAGE",
     {"FSDP refuses the way it is used", "FSDP 拒绝了这种用法"},
     {"Parameters of different types in one unit (LoRA in float32 on a bfloat16 model), frozen ones among trained ones, or a shape that "
      "changed after wrapping.",
      "同一单元中的参数类型不同（bfloat16 模型上的 float32 LoRA）、冻结与训练参数混合，或包装后形状改变。"},
     {"Cast the model to one type before wrapping; use_orig_params=True.", "包装前统一数据类型；use_orig_params=True。"},
     "torch/distributed/fsdp/_flat_param.py"},
    {"RUN-ZERO-USAGE",
     {"a program uses ZeRO's shards as if they were whole", "程序把 ZeRO 的分片当作完整参数使用"},
     {"Under ZeRO-3 a parameter outside its layer is an empty shard, and layers must run in the same order each step.",
      "在 ZeRO-3 下，离开所在层的参数只是空分片；且每一步各层的执行顺序必须相同。"},
     {"with deepspeed.zero.GatheredParameters(params): …, or ZeRO-2.",
      "with deepspeed.zero.GatheredParameters(params): …，或使用 ZeRO-2。"},
     "deepspeed/runtime/zero/partitioned_param_coordinator.py"},
    {"RUN-NAN",
     {"the numbers of the training became NaN or infinite", "训练数值变为 NaN 或无穷"},
     {"Loss or gradients are no numbers any more: too large a learning rate, float16 without scaling, a bad sample, or, where only one "
      "rank has them, a faulty GPU.",
      "loss 或梯度不再是数：学习率过大、float16 未缩放、坏样本；若只有一个 rank 出现，则可能是 GPU 故障。"},
     {"bfloat16 instead of float16, gradient clipping, a warm-up; try the rank's GPU alone:\n$ phalanx run --env TORCH_NCCL_NAN_CHECK=1 …",
      "用 bfloat16 代替 float16，梯度裁剪，warm-up；单独测试该 rank 的 GPU：\n$ phalanx run --env TORCH_NCCL_NAN_CHECK=1 …"},
     "deepspeed/runtime/fp16/loss_scaler.py"},
    {"RUN-ILLEGAL-INSTRUCTION",
     {"a rank used an instruction its CPU does not have", "rank 执行了 CPU 不支持的指令"},
     {"A library was built for a newer CPU (AVX-512 and the like) than this host has.", "某个库是为比本机更新的 CPU（如 AVX-512）构建的。"},
     {"$ lscpu | grep -i flags", "$ lscpu | grep -i flags"},
     "signal(7)"},
    {"RUN-HANGUP",
     {"the job ended with its terminal", "任务随终端一起结束"},
     {"SIGHUP: the terminal or ssh session was closed. torchrun handles the signal itself, so nohup does not help.",
      "SIGHUP：终端或 ssh 会话被关闭。torchrun 会自己处理该信号，nohup 无效。"},
     {"Start it apart from the terminal:\n$ setsid phalanx run … < /dev/null > log 2>&1 &",
      "脱离终端启动：\n$ setsid phalanx run … < /dev/null > log 2>&1 &"},
     "torch/distributed/elastic/multiprocessing/api.py"},
    {"RUN-TIME-LIMIT",
     {"the scheduler's time limit ended the job", "调度系统的时限结束了任务"},
     {"Slurm ended the job at its time limit. Nothing broke.", "Slurm 在时限到达时结束了任务，并没有故障。"},
     {"Ask for more time, or save and go on:\n$ sbatch --time=24:00:00 --signal=TERM@120 …",
      "申请更长时间，或保存后续跑：\n$ sbatch --time=24:00:00 --signal=TERM@120 …"},
     "sbatch(1)"},
    {"RUN-PREEMPTED",
     {"the scheduler took the hosts for another job", "调度系统把主机让给了其它任务"},
     {"The job was preempted. Nothing broke.", "任务被抢占，并没有故障。"},
     {"Save often, and let it be queued again:\n$ sbatch --requeue …", "经常保存，并允许重新排队：\n$ sbatch --requeue …"},
     "Slurm preemption documentation"},
};

}  // namespace

std::span<const Cause> log_program_causes() { return kLogProgramCauses; }

}  // namespace diagnosis
