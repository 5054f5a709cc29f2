// Python, packages, files.
#include "diagnosis/cause.h"

namespace diagnosis {
namespace {

constexpr Cause kLogSoftwareCauses[] = {
    {"ENV-IMPORT",
     {"a Python module cannot be imported", "无法导入 Python 模块"},
     {"The module is not installed in the environment this rank runs in, or in another version than the code expects. On one host only: "
      "the environments differ.",
      "该 rank 所用的环境里没有此模块，或版本与代码不符。若只在一台主机上出现：环境不一致。"},
     {"$ phalanx check\n$ python -m pip install <name>", "$ phalanx check\n$ python -m pip install <name>"},
     "CPython Lib/importlib"},
    {"ENV-PACKAGE-VERSION",
     {"a package is of another version than the code expects", "软件包版本与代码不符"},
     {"An argument, attribute or version that the installed package does not have: the code was written for another version, or hosts have "
      "different ones.",
      "已安装的软件包没有该参数、属性或版本：代码针对别的版本编写，或各主机版本不同。"},
     {"$ phalanx check\n$ python -m pip list", "$ phalanx check\n$ python -m pip list"},
     ""},
    {"ENV-LIBRARY-MISSING",
     {"a shared library is missing", "缺少共享库"},
     {"The loader does not find a library that a Python extension needs: it is not installed on this host, or LD_LIBRARY_PATH is not set "
      "for the ranks.",
      "加载器找不到 Python 扩展所需的库：本机没有安装，或 rank 没有相应的 LD_LIBRARY_PATH。"},
     {"$ ldd <file> | grep \"not found\"", "$ ldd <file> | grep \"not found\""},
     "ld.so(8)"},
    {"ENV-BUILD",
     {"a CUDA extension cannot be built", "CUDA 扩展无法编译"},
     {"Extensions that are compiled at the first use (DeepSpeed's optimizers, fused kernels) need nvcc of torch's CUDA version, ninja and "
      "a compiler on every host.",
      "首次使用时编译的扩展（DeepSpeed 优化器、fused kernel）要求每台主机都有与 torch 的 CUDA 版本一致的 nvcc、ninja 和编译器。"},
     {"$ nvcc --version\n$ python -c \"import torch; print(torch.version.cuda)\"\n$ ds_report",
      "$ nvcc --version\n$ python -c \"import torch; print(torch.version.cuda)\"\n$ ds_report"},
     "torch/utils/cpp_extension.py; deepspeed/ops/op_builder"},
    {"ENV-HUB",
     {"a file could not be downloaded", "无法下载文件"},
     {"The model hub (or another server) could not be reached and the file is not in the local cache. Training hosts often have no "
      "internet.",
      "无法访问模型 hub（或其它服务器），本地缓存也没有该文件。训练主机常常没有外网。"},
     {"Download once where there is a network, copy the cache, and stay offline:\n$ phalanx run --env HF_HUB_OFFLINE=1 …",
      "在有网络的机器下载一次，复制缓存，并离线运行：\n$ phalanx run --env HF_HUB_OFFLINE=1 …"},
     "huggingface_hub docs, environment variables"},
    {"ENV-HUB-ACCESS",
     {"a model is not there or not open to this account", "模型不存在或无权访问"},
     {"A gated model without a token, a name that is mistyped, or a local folder that does not exist on this host (its path is then taken "
      "for a name).",
      "受限模型没有 token、名称写错，或本机不存在该本地目录（路径被当作模型名）。"},
     {"$ ls -d <path>\n$ huggingface-cli login", "$ ls -d <path>\n$ huggingface-cli login"},
     "huggingface_hub/errors.py"},
    {"ENV-SYNTAX",
     {"the script is not valid Python", "脚本不是合法的 Python"},
     {"A file that was edited or copied badly, or a Python that is older than the code.",
      "文件被改坏或复制不完整，或 Python 版本比代码旧。"},
     {"$ python -m py_compile <script>", "$ python -m py_compile <script>"},
     "CPython"},
    {"ENV-ATTENTION",
     {"FlashAttention cannot be used here", "此处无法使用 FlashAttention"},
     {"The package is missing or built for another torch, or the GPU or data type is not one it supports.",
      "缺少该软件包或其为别的 torch 构建，或 GPU、数据类型不受支持。"},
     {"Without it: attn_implementation=\"sdpa\" (transformers), flash_attn: disabled (LLaMA-Factory).",
      "不使用它：attn_implementation=\"sdpa\"（transformers）、flash_attn: disabled（LLaMA-Factory）。"},
     "transformers/modeling_utils.py"},
    {"FS-FILE-MISSING",
     {"a file is not there", "文件不存在"},
     {"On all ranks: the path is wrong. On the ranks of one host only: data or model was not copied to it, or its mount is missing.",
      "所有 rank 都报错：路径写错。只有某台主机的 rank 报错：数据或模型没有复制过去，或缺少挂载。"},
     {"$ phalanx check <hosts> -- python <script> --data <path>", "$ phalanx check <hosts> -- python <script> --data <path>"},
     ""},
    {"FS-QUOTA",
     {"the disk quota is used up", "磁盘配额已用完"},
     {"The file system has room, but not for this user or project.", "文件系统还有空间，但该用户或项目的配额已满。"},
     {"$ quota -s\n$ lfs quota -h -u $USER /mnt", "$ quota -s\n$ lfs quota -h -u $USER /mnt"},
     "quotactl(2)"},
    {"FS-IO-ERROR",
     {"a disk or file server returned an input/output error", "磁盘或文件服务器返回 I/O 错误"},
     {"The hardware or the server failed: bad sectors, a controller, a network file system that lost its server.",
      "硬件或服务器故障：坏扇区、控制器，或网络文件系统失去服务器。"},
     {"$ sudo dmesg -T | grep -iE \"i/o error|nvme|ext4|xfs|nfs\"\n$ sudo smartctl -a <disk>",
      "$ sudo dmesg -T | grep -iE \"i/o error|nvme|ext4|xfs|nfs\"\n$ sudo smartctl -a <disk>"},
     "errno(3) EIO"},
    {"RUN-NO-MEMORY",
     {"a rank was refused memory of the host", "rank 申请主机内存被拒绝"},
     {"The allocation itself failed (ENOMEM, std::bad_alloc, MemoryError): a limit of the process, no overcommit, or a single request that "
      "is larger than the machine.",
      "内存申请本身失败（ENOMEM、std::bad_alloc、MemoryError）：进程限制、禁止超量分配，或单次申请超过整机内存。"},
     {"$ free -m\n$ ulimit -v\n$ cat /proc/sys/vm/overcommit_memory", "$ free -m\n$ ulimit -v\n$ cat /proc/sys/vm/overcommit_memory"},
     "malloc(3); c10/core/impl/alloc_cpu.cpp"},
};

}  // namespace

std::span<const Cause> log_software_causes() { return kLogSoftwareCauses; }

}  // namespace diagnosis
