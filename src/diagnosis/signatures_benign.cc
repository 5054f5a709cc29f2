// What looks like a fault and is none.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kBenignSignatures[] = {
    {"LOG-HARMLESS", Role::kBenign, "libnccl-net.so",
     R"(NET/Plugin ?: ?.*(libnccl-net\S*\.so: cannot open shared object file|Could not find: libnccl-net\.so|Plugin )"
     "load)",
     "ainode08:2950111:2950111 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: "
     "cannot open shared object file: No such file or directory",
     "dlopen libnccl-net.so"},
    {"LOG-HARMLESS", Role::kBenign, "errno: 97 - ", R"(\(errno: 97 - Address family not supported by protocol\))",
     "[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not "
     "supported by protocol).",
     "errno: 97 - x"},
    {"LOG-HARMLESS", Role::kBenign, "is listening yet, will retry", R"(No socket on \(.*\) is listening yet, will retry)",
     "[I socket.cpp:624] [c10d - debug] No socket on (gpu01, 29500) is listening yet, will retry.", "no one is listening yet, will retry"},
    {"LOG-HARMLESS", Role::kBenign, "Setting OMP_NUM_THREADS environment variable",
     "Setting OMP_NUM_THREADS environment variable for each process to be 1",
     "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being "
     "overloaded",
     "Setting OMP_NUM_THREADS environment variable"},
    {"LOG-HARMLESS", Role::kBenign, "The current process just got forked",
     "huggingface/tokenizers: The current process just got forked, after parallelism has already been used",
     "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling "
     "parallelism to avoid deadlocks...",
     "The current process just got forked"},
    {"LOG-HARMLESS", Role::kBenign, "below the recommended minimum of 5.5.0",
     R"(Detected kernel version \S+, which is below the recommended minimum of 5\.5\.0)",
     "Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can cause the process to "
     "hang. It is recommended to upgrade the kernel to the minimum version or higher.",
     "below the recommended minimum of 5.5.0"},
    {"LOG-HARMLESS", Role::kBenign, "destroy_process_group() was not called",
     R"(destroy_process_group\(\) was not called before program exit)",
     "[rank0]:[W1120 08:47:12.345 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called "
     "before program exit, which can leak resources.",
     "call destroy_process_group()"},
    {"LOG-HARMLESS", Role::kBenign, "process group has NOT been destroyed",
     "process group has NOT been destroyed before we destruct ProcessGroupNCCL",
     "[rank0]:[W1120 08:47:12.345 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed "
     "before we destruct ProcessGroupNCCL.",
     "the process group has NOT been destroyed"},
    {"LOG-HARMLESS", Role::kBenign, "doesn't support faster communication speedups",
     R"(Using RTX \d+ series which doesn't support faster communication speedups)",
     "Using RTX 4000 series which doesn't support faster communication speedups. Ensuring P2P and IB communications "
     "are disabled.",
     "it doesn't support faster communication speedups"},
    {"LOG-HARMLESS", Role::kBenign, "This is usually caused by", "This is usually caused by|may be caused by|can be caused by",
     "This is usually caused by a NCCL remote process exiting: Connection reset by peer", "usually caused by"},
    {"LOG-HARMLESS", Role::kBenign, "find_unused_parameters=True was specified",
     "find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters",
     "[W reducer.cpp:1300] Warning: find_unused_parameters=True was specified in DDP constructor, but did not find "
     "any unused parameters in the forward pass.",
     "find_unused_parameters=True was specified"},
    {"LOG-HARMLESS", Role::kBenign, "is deprecated", "(FutureWarning|DeprecationWarning|UserWarning): .*is deprecated",
     "/opt/env/lib/python3.10/site-packages/torch/utils/checkpoint.py:31: FutureWarning: the default of RuntimeError: "
     "x is deprecated",
     "x is deprecated"},
    {"LOG-HARMLESS", Role::kBenign, "OVERFLOW! ", R"(OVERFLOW! Rank (?P<rank>\d+) Skipping step)",
     "[2024-03-05 10:20:31,884] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
     "Attempted loss scale: 65536, reducing to 32768",
     "OVERFLOW! "},
    {"LOG-HARMLESS", Role::kBenign, "returned Connection refused, retrying", R"(returned Connection refused, retrying \(\d/)",
     "gpu02:77:501 [0] NCCL INFO socketPollConnect: connect to 10.0.0.1<48213> returned Connection refused, retrying "
     "(1/34) after sleep for 100 msec",
     "returned Connection refused, retrying (20/34)"},
    {"LOG-HARMLESS", Role::kBenign, "wandb: ", "^wandb: (WARNING|ERROR|Network error|W |Waiting|Currently|Tracking|Syncing|Run )",
     "wandb: Network error (ConnectionError), entering retry loop.", "import wandb: yes"},
    {"LOG-HARMLESS", Role::kBenign, "is deprecated; use TORCH_NCCL",
     R"(Environment variable NCCL_\w+ is deprecated; use TORCH_NCCL_\w+ instead)",
     "[W Utils.hpp:133] Warning: Environment variable NCCL_BLOCKING_WAIT is deprecated; use TORCH_NCCL_BLOCKING_WAIT "
     "instead (function operator())",
     "NCCL_X is deprecated; use TORCH_NCCL"},
    {"LOG-HARMLESS", Role::kBenign, "libnccl-tuner", "NCCL INFO .*(TUNER/Plugin|PROFILER/Plugin|ENV/Plugin).*",
     "gpu01:90:401 [0] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.", "libnccl-tuner.so"},
};

}  // namespace

std::span<const Signature> benign_signatures() { return kBenignSignatures; }

}  // namespace diagnosis
