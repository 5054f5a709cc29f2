// File systems, disks, shared memory.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kStorageSignatures[] = {
    {"FS-SHM-SMALL", Role::kRoot, "is killed by signal: Bus error",
     R"(DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: Bus error)",
     "RuntimeError: DataLoader worker (pid 4021) is killed by signal: Bus error. It is possible that dataloader's "
     "workers are out of shared memory. Please try to raise your shared memory limit.",
     "worker is killed by signal: Killed"},
    {"FS-SHM-SMALL", Role::kRoot, "Unexpected bus error encountered in worker", "ERROR: Unexpected bus error encountered in worker",
     "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
     "an Unexpected bus error"},
    {"FS-SHM-SMALL", Role::kRoot, "unable to write to file </torch_", R"(unable to (write to|resize) file </torch_\S+>)",
     "RuntimeError: unable to write to file </torch_4021_1812032>", "unable to write to file x"},
    {"FS-SHM-SMALL", Role::kRoot, "unable to mmap ",
     R"(unable to mmap \d+ bytes from file <filename not specified>: Cannot allocate memory)",
     "RuntimeError: unable to mmap 1024 bytes from file <filename not specified>: Cannot allocate memory (12)", "unable to mmap the model"},
    {"FS-DISK-FULL", Role::kRoot, "No space left on device",
     R"((OSError|IOError|Errno 28|error|Error|write|failed|cannot|tar|cp|rsync)\S*:?.*No space left on device)",
     "OSError: [Errno 28] No space left on device", "ENOSPC means No space left on device"},
    {"FS-DISK-FULL", Role::kRoot, "PytorchStreamWriter failed writing file", "PytorchStreamWriter failed writing file",
     "RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/0: file "
     "write failed",
     "PytorchStreamWriter wrote file"},
    {"FS-DISK-FULL", Role::kRoot, "unexpected pos ", R"(enforce fail at inline_container\.cc:\d+\] \. unexpected pos \d+ vs \d+)",
     "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 8192 vs 8086", "unexpected pos in the queue"},
    {"FS-DISK-FULL", Role::kRoot, "No usable temporary directory found", "No usable temporary directory found in",
     "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/job']",
     "No usable temporary directory"},
    {"FS-DISK-FULL", Role::kRoot, "I/O error: No space left", "SafetensorError: .*No space left on device",
     "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)",
     "an I/O error: No space left"},
    {"FS-QUOTA", Role::kRoot, "Disk quota exceeded", R"((Errno 122\]|error|Error|write|cannot|os error).*Disk quota exceeded)",
     "OSError: [Errno 122] Disk quota exceeded: '/job/out/checkpoint-500'", "docs: Disk quota exceeded"},
    {"FS-READ-ONLY", Role::kRoot, "Read-only file system",
     R"((Errno 30\]|os error 30|cannot|error).*Read-only file system|Read-only file system.*(os error 30))",
     "OSError: [Errno 30] Read-only file system: '/data/out'", "mounted as a Read-only file system"},
    {"FS-READ-ONLY", Role::kRoot, "emounting filesystem read-only", "EXT4-fs .*Remounting filesystem read-only",
     "EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "Remounting filesystem read-only is how to check"},
    {"FS-IO-ERROR", Role::kRoot, "Input/output error", R"((OSError: )?\[Errno 5\] Input/output error)",
     "OSError: [Errno 5] Input/output error: '/data/shard-00012.tar'", "an Input/output error table"},
    {"FS-IO-ERROR", Role::kRoot, "I/O error, dev ",
     R"((blk_update_request: )?(critical medium error|I/O error), dev (?P<device>\w+), sector)",
     "blk_update_request: I/O error, dev nvme0n1, sector 203480", "no I/O error, dev is fine"},
    {"FS-STALE", Role::kRoot, "Stale file handle", R"((Errno 116\]|os error 116|cannot|error).*Stale (NFS )?file handle)",
     "OSError: [Errno 116] Stale file handle: '/mnt/nfs/data/train.bin'", "Stale file handles are bad"},
    {"FS-NOT-WRITABLE", Role::kRoot, "PermissionError: [Errno 13]", R"(PermissionError: \[Errno 13\] Permission denied: '(?P<path>[^']+)')",
     "PermissionError: [Errno 13] Permission denied: '/data/out/checkpoint-10'", "PermissionError: [Errno 13] was handled"},
    {"FS-FILE-MISSING", Role::kRoot, "FileNotFoundError: ",
     R"(FileNotFoundError: (\[Errno 2\] No such file or directory: '(?P<path>[^']+)'|.*(doesn't exist|not )"
     "found|Couldn't find))",
     "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.jsonl'", "except FileNotFoundError: pass"},
    {"FS-FILE-MISSING", Role::kRoot, "NotADirectoryError: ", R"(NotADirectoryError: \[Errno 20\])",
     "NotADirectoryError: [Errno 20] Not a directory: '/data/train'", "except NotADirectoryError: pass"},
    {"FS-HUNG", Role::kRoot, "not responding, still trying", R"(nfs: server (?P<address>\S+) not responding, still trying)",
     "nfs: server 10.0.0.9 not responding, still trying", "the dog is not responding, still trying"},
    {"FS-HUNG", Role::kSymptom, "blocked for more than ", R"(INFO: task (?P<task>\S+):(?P<pid>\d+) blocked for more than \d+ seconds)",
     "INFO: task python:18231 blocked for more than 120 seconds.", "the door was blocked for more than 2 hours"},
    {"FS-SHM-ORPHANS", Role::kBenign, "leaked shared_memory objects",
     R"(resource_tracker: There appear to be \d+ leaked (shared_memory|semaphore) objects)",
     "/usr/lib/python3.10/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be "
     "4 leaked shared_memory objects to clean up at shutdown",
     "no leaked shared_memory objects"},
    {"LOG-HARMLESS", Role::kBenign, "leaked semaphore objects", R"(There appear to be \d+ leaked semaphore objects)",
     "resource_tracker: There appear to be 30 leaked semaphore objects to clean up at shutdown", "leaked semaphore objects"},
};

}  // namespace

std::span<const Signature> storage_signatures() { return kStorageSignatures; }

}  // namespace diagnosis
