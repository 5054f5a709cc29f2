// Limits of processes, memory of hosts and cgroups.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kLimitsSignatures[] = {
    {"LIM-NOFILE", Role::kRoot, "Too many open files", R"((Errno 24\]|os error 24|error|failed|accept|socket|cannot).*Too many open files)",
     "OSError: [Errno 24] Too many open files", "Too many open files on your desk"},
    {"LIM-NOFILE", Role::kRoot, "received 0 items of ancdata", "RuntimeError: received 0 items of ancdata",
     "RuntimeError: received 0 items of ancdata", "received 0 items of mail"},
    {"LIM-NOFILE", Role::kRoot, "unable to open shared memory object",
     R"(unable to open shared memory object </torch_\S+> in read-write mode)",
     "RuntimeError: unable to open shared memory object </torch_81234_1221> in read-write mode: Too many open files "
     "(24)",
     "unable to open shared memory object of desire"},
    {"LIM-NPROC", Role::kRoot, "can't start new thread", "RuntimeError: can't start new thread", "RuntimeError: can't start new thread",
     "why one can't start new thread pools"},
    {"LIM-NPROC", Role::kRoot, "pthread_create failed",
     "(OpenBLAS blas_thread_init: |libgomp: .*|Thread creation failed: .*|OMP: .*)pthread_create failed",
     "OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 64: Resource temporarily unavailable",
     "pthread_create failed in the test"},
    {"LIM-NPROC", Role::kRoot, "Thread creation failed", "libgomp: Thread creation failed: Resource temporarily unavailable",
     "libgomp: Thread creation failed: Resource temporarily unavailable", "Thread creation failed"},
    {"LIM-NPROC", Role::kRoot, "Resource temporarily unavailable",
     R"((BlockingIOError: \[Errno 11\]|fork: retry:|fork:|pthread_create) .*Resource temporarily )"
     R"(unavailable|BlockingIOError: \[Errno 11\] Resource temporarily unavailable)",
     "BlockingIOError: [Errno 11] Resource temporarily unavailable", "recv: Resource temporarily unavailable"},
    {"LIM-PIDS-MAX", Role::kRoot, "fork rejected by pids controller", R"(cgroup: fork rejected by pids controller in (?P<cgroup>\S+))",
     "cgroup: fork rejected by pids controller in /docker/81d2", "the fork rejected by pids controllers"},
    {"RUN-OOM-HOST", Role::kRoot, "Out of memory: Killed process",
     R"((?:^|\] |kernel: |\S+ )Out of memory: Kill(ed)? process (?P<pid>\d+) \((?P<program>[^)]*)\))",
     "Out of memory: Killed process 18231 (python) total-vm:184467440kB, anon-rss:120394812kB",
     R"(grep "Out of memory: Killed process" /var/log/kern.log)"},
    {"RUN-OOM-CGROUP", Role::kRoot, "Memory cgroup out of memory",
     R"(Memory cgroup out of memory: Kill(ed)? process (?P<pid>\d+) \((?P<program>[^)]*)\))",
     "Memory cgroup out of memory: Killed process 18231 (python) total-vm:84467440kB, anon-rss:60394812kB",
     R"(grep "Memory cgroup out of memory" dmesg)"},
    {"RUN-OOM-HOST", Role::kRoot, "oom-kill:constraint=CONSTRAINT_NONE",
     R"(oom-kill:constraint=CONSTRAINT_NONE.*,task=(?P<program>[^,]+),pid=(?P<pid>\d+))",
     "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user.slice,"
     "task=python,pid=18231,uid=1000",
     "oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=1"},
    {"RUN-OOM-CGROUP", Role::kRoot, "oom-kill:constraint=CONSTRAINT_MEMCG",
     R"(oom-kill:constraint=CONSTRAINT_MEMCG.*,task=(?P<program>[^,]+),pid=(?P<pid>\d+))",
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg=/docker/8,task_memcg=/d"
     "ocker/8,task=python,pid=18231,uid=0",
     "oom-kill:constraint=CONSTRAINT_NONE,task=python,pid=1"},
    {"RUN-NO-MEMORY", Role::kRoot, "DefaultCPUAllocator: can't allocate memory",
     R"(DefaultCPUAllocator: can't allocate memory: you tried to allocate (?P<wanted>\d+) bytes)",
     "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you "
     "tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)",
     "DefaultCPUAllocator: can't allocate memory"},
    {"RUN-NO-MEMORY", Role::kRoot, "Cannot allocate memory", R"((OSError: |BlockingIOError: )?\[Errno 12\] Cannot allocate memory)",
     "OSError: [Errno 12] Cannot allocate memory", "Call to x failed with error Cannot allocate memory"},
    {"RUN-NO-MEMORY", Role::kRoot, "MemoryError", R"(^(numpy\.core\._exceptions\.|numpy\._core\._exceptions\.)?_?(Array)?MemoryError(:|$))",
     "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.4 GiB for an array with shape (1664000000,) and "
     "data type int64",
     "except MemoryError:"},
    {"RUN-NO-MEMORY", Role::kRoot, "std::bad_alloc",
     R"((terminate called after throwing an instance of 'std::bad_alloc'|what\(\):\s+std::bad_alloc|MemoryError: )"
     "std::bad_alloc)",
     "terminate called after throwing an instance of 'std::bad_alloc'", "catch (const std::bad_alloc&)"},
};

}  // namespace

std::span<const Signature> limits_signatures() { return kLimitsSignatures; }

}  // namespace diagnosis
