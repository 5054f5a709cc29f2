// Faults of GPUs and CUDA as programs report them.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogGpuCauses[] = {
    {"RUN-OOM-GPU",
     {"a GPU ran out of memory", "GPU 显存耗尽"},
     {"A rank asked for more memory than its GPU had left. The other ranks then wait for it and time out minutes later. Where \"reserved "
      "by PyTorch but unallocated\" is large the memory is fragmented; where \"Process N has … in use\" names another process, the card is "
      "shared; where the card of local rank 0 alone is full, ranks forgot torch.cuda.set_device.",
      "某个 rank 申请的显存超过了 GPU 剩余量，其它 rank 随后等待它并在几分钟后超时。若 \"reserved by PyTorch but unallocated\" "
      "很大则是碎片；若提到另一个 Process 在使用则是与他人共用；若只有 0 号卡满，则多半没有调用 torch.cuda.set_device。"},
     {"Smaller batch or sequence, activation checkpointing, a higher ZeRO stage; against fragmentation:\n$ phalanx run --env "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True …\n$ phalanx fit <model>/config.json",
      "减小 batch 或序列长度，开启激活重计算，提高 ZeRO 阶段；针对碎片：\n$ phalanx run --env "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True …\n$ phalanx fit <model>/config.json"},
     "c10/cuda/CUDACachingAllocator.cpp"},
    {"GPU-ASSERT",
     {"a check inside a GPU kernel failed", "GPU kernel 内的断言失败"},
     {"Nearly always an index out of range: a token id beyond the embedding, a label beyond the number of classes. The first \"Assertion … "
      "failed\" line says which; all later CUDA errors of that rank, and the NCCL errors of others, follow from it.",
      "几乎总是下标越界：token id 超出词表、标签超出类别数。第一条 \"Assertion … failed\" 说明是哪一个；该 rank 之后的 CUDA 错误和其它 "
      "rank 的 NCCL 错误都由它引起。"},
     {"Compare vocabulary and label range with the data. To get the Python line:\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …",
      "核对词表、标签范围与数据。要得到出错的 Python 行：\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …"},
     "aten/src/ATen/native/cuda/Indexing.cu"},
    {"GPU-ILLEGAL-ACCESS",
     {"a GPU kernel touched memory that is not its own", "GPU kernel 访问了非法显存"},
     {"CUDA 700, 716 or 719: a bug in a kernel or extension, or, where it is always the same card, a fault of the hardware. Errors of CUDA "
      "come late: the line that reports it need not be the line that did it.",
      "CUDA 700、716 或 719：kernel 或扩展的 bug；若总是同一张卡，则是硬件故障。CUDA 错误是延迟报告的：报错的那一行不一定是出错的那一行。"},
     {"Find the kernel, and see whether the kernel log blames a card:\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …\n$ sudo dmesg -T | "
      "grep -i xid",
      "找到出错的 kernel，并查看内核日志是否指向某张卡：\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …\n$ sudo dmesg -T | grep -i xid"},
     "CUDA Runtime API, cudaError"},
    {"GPU-LIBRARY-ERROR",
     {"cuBLAS or cuDNN failed", "cuBLAS 或 cuDNN 出错"},
     {"CUBLAS_STATUS_… or CUDNN_STATUS_…: often memory that ran out, an index out of range shortly before, or libraries of two CUDA "
      "versions in one process.",
      "CUBLAS_STATUS_… 或 CUDNN_STATUS_…：常见原因是显存不足、之前不久的下标越界，或同一进程里有两个 CUDA 版本的库。"},
     {"See which libraries are loaded, and try with blocking launches:\n$ phalanx check\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …",
      "查看加载了哪些库，并以阻塞方式重试：\n$ phalanx check\n$ phalanx run --env CUDA_LAUNCH_BLOCKING=1 …"},
     "cuBLAS and cuDNN documentation"},
    {"GPU-CUDA-ERROR",
     {"a call of CUDA failed", "CUDA 调用失败"},
     {"CUDA reported an error that has no page of its own here. Look for an earlier line of the same rank, and for Xid lines in the kernel "
      "log.",
      "CUDA 报告了一个这里没有专门说明的错误。请查看同一 rank 更早的输出，以及内核日志中的 Xid。"},
     {"$ sudo dmesg -T | grep -i xid\n$ phalanx check", "$ sudo dmesg -T | grep -i xid\n$ phalanx check"},
     "CUDA Runtime API, cudaError"},
    {"GPU-CUDA-FORK",
     {"CUDA was used before a process was forked", "fork 之前已使用 CUDA"},
     {"A DataLoader worker or a child of multiprocessing was forked from a process that had already used CUDA: \"Cannot re-initialize CUDA "
      "in forked subprocess\".",
      "DataLoader worker 或 multiprocessing 子进程是从已使用 CUDA 的进程 fork 出来的：“Cannot re-initialize CUDA in forked subprocess”。"},
     {"Keep CUDA out of the data set, or start workers anew: DataLoader(..., multiprocessing_context='spawn').",
      "不要在数据集中使用 CUDA，或以 spawn 启动 worker：DataLoader(..., multiprocessing_context='spawn')。"},
     "torch/cuda/__init__.py"},
    {"GPU-DUPLICATE",
     {"two ranks use the same GPU", "两个 rank 使用了同一张 GPU"},
     {"NCCL refuses a communicator in which two ranks hold one card: \"Duplicate GPU detected\". Ranks did not call "
      "torch.cuda.set_device(local_rank), or all have LOCAL_RANK 0.",
      "NCCL 拒绝两个 rank 占用同一张卡的通信组：“Duplicate GPU detected”。各 rank 没有调用 torch.cuda.set_device(local_rank)，或 "
      "LOCAL_RANK 都是 0。"},
     {"In the script: torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before anything else on the GPU.",
      "在脚本中最先执行：torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))。"},
     "nccl src/init.cc"},
};

}  // namespace

std::span<const Cause> log_gpu_causes() { return kLogGpuCauses; }

}  // namespace diagnosis
