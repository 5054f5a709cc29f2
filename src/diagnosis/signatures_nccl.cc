// NCCL: versions, settings, what it says of itself.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kNcclSignatures[] = {
    {"NCCL-VERSION-DIFFERS", Role::kRoot, "Mismatched NCCL version detected",
     R"(Mismatched NCCL version detected ?: rank (?P<rank>\d+) version)",
     "gpu02:90:401 [0] init.cc:902 NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 rank 8 version "
     "22005",
     "NCCL version 2.18.5+cuda12.1"},
    {"NCCL-VERSION-DIFFERS", Role::kRoot, "mismatch in info from procs", "Bootstrap Root ?: mismatch in (info from procs|rank count)",
     "gpu01:90:401 [0] bootstrap.cc:261 NCCL WARN Bootstrap Root : mismatch in info from procs, received 8, expected "
     "16",
     "a mismatch in info from procs is fatal"},
    {"RDZV-RANK-TWICE", Role::kRoot, "has already checked in",
     R"(Bootstrap Root ?: rank (?P<rank>\d+) of \d+ ranks has already checked in)",
     "gpu01:90:401 [0] bootstrap.cc:275 NCCL WARN Bootstrap Root : rank 1 of 2 ranks has already checked in",
     "the guest has already checked in"},
    {"NCCL-MISSING", Role::kRoot, "libnccl.so", R"(libnccl\.so\S*: cannot open shared object file)",
     "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory", "ls: /usr/lib/libnccl.so.2"},
    {"NCCL-SHADOWED", Role::kRoot, "undefined symbol: nccl", R"(undefined symbol: nccl\w+)",
     "ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: "
     "ncclCommRegister",
     "undefined symbol: ncurses_init"},
    {"NCCL-SHADOWED", Role::kRoot, "NCCL library is too old",
     R"(NCCL library is too old\. This application was compiled with NCCL version)",
     "gpu01:90:401 [0] init.cc:80 NCCL WARN NCCL library is too old. This application was compiled with NCCL version "
     "2.30.3, but is running with NCCL library 2.20.5",
     "your NCCL library is too old for FP8"},
    {"NCCL-NET-DISABLED", Role::kRoot, "Error: network ", R"(NCCL WARN Error: network \S+ not found)",
     "gpu01:90:401 [0] net.cc:101 NCCL WARN Error: network IB not found.", "Error: network down"},
    {"NCCL-NET-DISABLED", Role::kRoot, "Failed to initialize any NET plugin", "Failed to initialize any NET plugin",
     "gpu01:90:401 [0] plugin/net.cc:287 NCCL WARN Failed to initialize any NET plugin", "Initialized NET plugin Socket"},
    {"NCCL-ALGO", Role::kRoot, "no algorithm/protocol available", "Error ?: no algorithm/protocol available for function",
     "gpu01:90:401 [0] enqueue.cc:1920 NCCL WARN Error : no algorithm/protocol available for function AllReduce with "
     "datatype ncclFloat32. NCCL_ALGO was set to nvls.",
     "no algorithm/protocol available yet"},
    {"NCCL-ALGO", Role::kRoot, "Unrecognized element token", "NCCL WARN Unrecognized element token",
     R"(gpu01:90:401 [0] graph/tuning.cc:60 NCCL WARN Unrecognized element token "rings" when parsing "rings")",
     "Unrecognized element token in xml"},
    {"NCCL-IMEX", Role::kRoot, "IMEX", "NCCL WARN MNNVL .*IMEX",
     "gpu01:90:401 [0] mnnvl.cc:60 NCCL WARN MNNVL (cliqueSize 8) is available but not working on some system. Check "
     "the IMEX configuration (nvidia-imex-ctl -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
     "IMEX channels: 1"},
    {"NCCL-CUMEM-HOST", Role::kRoot, "Could not find real path of", R"(NCCL WARN Could not find real path of (?P<path>\S+))",
     "gpu01:90:401 [0] graph/xml.cc:482 NCCL WARN Could not find real path of "
     "/sys/class/pci_bus/0000:34/../../0000:34:00.0",
     "Could not find real path of happiness"},
    {"NCCL-CUMEM-HOST", Role::kRoot, "Error while creating shared memory segment", "NCCL WARN Error while creating shared memory segment",
     "gpu01:90:401 [0] misc/shmutils.cc:112 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Abc123 "
     "(size 9637888)",
     "created shared memory segment"},
    {"FS-SHM-SMALL", Role::kRoot, "failed to extend /dev/shm", R"(failed to extend /dev/shm/\S+ to \d+ bytes)",
     "gpu01:90:401 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-6yTmdW to 33030532 bytes, "
     "error: No space left on device (28)",
     "raise the limit of /dev/shm"},
    {"FS-SHM-SMALL", Role::kRoot, "Call to posix_fallocate failed", "Call to posix_fallocate failed",
     "gpu01:90:401 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", "posix_fallocate succeeded"},
    {"NCCL-PLUGIN", Role::kRoot, "GLIBC_", R"(NET/Plugin.*version .GLIBC_\d+\.\d+' not found)",
     "gpu01:90:401 [0] NCCL INFO NET/Plugin: dlerror=/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found "
     "(required by /opt/aws-ofi-nccl/lib/libnccl-net.so) No plugin found",
     "ldd: version `GLIBC_2.38' not found"},
    {"NCCL-PLUGIN", Role::kRoot, "NET/OFI",
     "NCCL WARN NET/OFI (Failed to (initialize|load)|Couldn.t|Only EFA provider is supported|.*not available)",
     "gpu01:90:401 [0] nccl_net_ofi_init:1444 NCCL WARN NET/OFI Only EFA provider is supported",
     "NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.7.4-aws"},
    {"NCCL-SYSTEM-ERROR", Role::kSymptom, "unhandled system error",
     "(NCCL error|NCCL Error|DistBackendError|RuntimeError).*unhandled system error",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, "
     "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3",
     "2 unhandled system error"},
    {"NCCL-SYSTEM-ERROR", Role::kSymptom, "ncclSystemError: System call", R"(^\s*ncclSystemError: System call)",
     "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
     "the code for ncclSystemError: System call failed"},
    {"NCCL-CUDA-ERROR", Role::kSymptom, "unhandled cuda error",
     "(NCCL error|NCCL Error|DistBackendError|RuntimeError).*unhandled cuda error",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, "
     "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1",
     "1 unhandled cuda error"},
    {"NCCL-CUDA-ERROR", Role::kSymptom, "ncclUnhandledCudaError: Call to CUDA", R"(^\s*ncclUnhandledCudaError: Call to CUDA)",
     "ncclUnhandledCudaError: Call to CUDA function failed.", "see ncclUnhandledCudaError: Call to CUDA in the docs"},
    {"NCCL-CUDA-ERROR", Role::kSymptom, "NCCL WARN Cuda failure", R"(NCCL WARN Cuda failure (\d+ )?'(?P<what>[^']*)')",
     "gpu01:90:401 [0] enqueue.cc:1429 NCCL WARN Cuda failure 'invalid argument'", "NCCL INFO Cuda 12.2"},
    {"NCCL-INVALID-USAGE", Role::kSymptom, "ncclInvalidUsage", "ncclInvalidUsage: This usually reflects|invalid usage.*ncclInvalidUsage",
     "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "case ncclInvalidUsage"},
    {"NCCL-INVALID-USAGE", Role::kSymptom, ", invalid usage", "(NCCL error|DistBackendError|RuntimeError).*, invalid usage",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, "
     "invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.19.3",
     "5, invalid usage"},
    {"NCCL-INTERNAL", Role::kSymptom, ", internal error", "(NCCL error|DistBackendError|RuntimeError).*, internal error",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, "
     "internal error - please report this issue to the NCCL developers, NCCL version 2.20.5",
     "500, internal error"},
    {"LOG-HARMLESS", Role::kContext, " nranks ", R"(NCCL INFO .*comm 0x[0-9a-f]+ rank \d+ nranks (?P<nranks>\d+) )",
     "gpu01:2950111:2950934 [0] NCCL INFO comm 0x55ef29c93970 rank 1 nranks 2 cudaDev 0 busId 34000 commId "
     "0xc40540e13bf8d8f2 - Init COMPLETE",
     "the job has nranks many"},
};

}  // namespace

std::span<const Signature> nccl_signatures() { return kNcclSignatures; }

}  // namespace diagnosis
