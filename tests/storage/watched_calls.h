// The system calls on files that may fail, and where their arguments name the file.
#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>

namespace phalanx::storage {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Where a call names its file: by a path, by a folder's descriptor and a path, or by a descriptor.
enum class Names { kPath, kAt, kDescriptor };
struct Watched {
  int number;
  const char* name;
  Names names;
  int argument = 0;  // the first of what names the file
  bool moves_bytes = false;
};

constexpr Watched kWatched[] = {
#if defined(__x86_64__)
    {SYS_open, "open", Names::kPath},
    {SYS_stat, "stat", Names::kPath},
    {SYS_lstat, "lstat", Names::kPath},
    {SYS_access, "access", Names::kPath},
    {SYS_mkdir, "mkdir", Names::kPath},
    {SYS_rmdir, "rmdir", Names::kPath},
    {SYS_unlink, "unlink", Names::kPath},
    {SYS_rename, "rename", Names::kPath},
    {SYS_link, "link", Names::kPath},
    {SYS_symlink, "symlink", Names::kPath, 1},
    {SYS_readlink, "readlink", Names::kPath},
    {SYS_chmod, "chmod", Names::kPath},
    {SYS_newfstatat, "newfstatat", Names::kAt},
#elif defined(__aarch64__)
    {SYS_newfstatat, "newfstatat", Names::kAt},
#endif
    {SYS_truncate, "truncate", Names::kPath},
    {SYS_statfs, "statfs", Names::kPath},
    {SYS_openat, "openat", Names::kAt},
    {SYS_statx, "statx", Names::kAt},
    {SYS_faccessat, "faccessat", Names::kAt},
    {SYS_faccessat2, "faccessat2", Names::kAt},
    {SYS_mkdirat, "mkdirat", Names::kAt},
    {SYS_unlinkat, "unlinkat", Names::kAt},
    {SYS_renameat, "renameat", Names::kAt},
    {SYS_renameat2, "renameat2", Names::kAt},
    {SYS_linkat, "linkat", Names::kAt},
    {SYS_symlinkat, "symlinkat", Names::kAt, 1},
    {SYS_readlinkat, "readlinkat", Names::kAt},
    {SYS_fchmodat, "fchmodat", Names::kAt},
    {SYS_utimensat, "utimensat", Names::kAt},
    {SYS_read, "read", Names::kDescriptor, 0, true},
    {SYS_pread64, "pread", Names::kDescriptor, 0, true},
    {SYS_write, "write", Names::kDescriptor, 0, true},
    {SYS_pwrite64, "pwrite", Names::kDescriptor, 0, true},
    {SYS_writev, "writev", Names::kDescriptor},
    {SYS_fsync, "fsync", Names::kDescriptor},
    {SYS_fdatasync, "fdatasync", Names::kDescriptor},
    {SYS_ftruncate, "ftruncate", Names::kDescriptor},
    {SYS_fallocate, "fallocate", Names::kDescriptor},
    {SYS_flock, "flock", Names::kDescriptor},
    {SYS_fstat, "fstat", Names::kDescriptor},
    {SYS_fchmod, "fchmod", Names::kDescriptor},
    {SYS_fstatfs, "fstatfs", Names::kDescriptor},
    {SYS_getdents64, "getdents64", Names::kDescriptor},
    {SYS_lseek, "lseek", Names::kDescriptor},
};

}  // namespace phalanx::storage
