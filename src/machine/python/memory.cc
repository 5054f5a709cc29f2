#include "machine/python/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "machine/ranks/use.h"
#include "machine/small_files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostOpened = 256;

// Yama's levels: Documentation/admin-guide/LSM/Yama.rst of Linux.
std::string why_not(int error) {
  if (error != EACCES && error != EPERM) return std::strerror(error);
  int64_t scope = read_number("/proc/sys/kernel/yama/ptrace_scope").value_or(0);
  if (scope == 0)
    return "permission denied: the process belongs to another user, or runs a program that may not be traced (PR_SET_DUMPABLE)";
  if (scope >= 3) return "kernel.yama.ptrace_scope is 3: no process may be read until a reboot with a lower value";
  return fmt::format("kernel.yama.ptrace_scope is {}; allow it with: sudo sysctl kernel.yama.ptrace_scope={}", scope, scope == 1 ? 0 : 1);
}

}  // namespace

os::Fd open_memory(pid_t pid) { return os::Fd(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC)); }

OpenedMemories open_memories(const std::vector<pid_t>& roots) {
  OpenedMemories opened;
  for (const std::vector<pid_t>& family : families(roots))
    for (pid_t pid : family)
      if (opened.size() < kMostOpened)
        if (os::Fd file = open_memory(pid); file.valid()) opened.emplace(pid, std::move(file));
  return opened;
}

ProcessMemory::ProcessMemory(pid_t pid, int opened) : file_(opened) {
  if (file_ >= 0) return;
  own_ = open_memory(pid);
  if (!own_.valid()) problem_ = why_not(errno);
  file_ = own_.get();
}

bool ProcessMemory::read(uint64_t address, void* into, size_t bytes) {
  if (file_ < 0 || address < 4096 || address > uint64_t{INT64_MAX} - bytes) return false;
  for (int tries = 0; tries < 8; ++tries) {
    ssize_t got = ::pread(file_, into, bytes, static_cast<off_t>(address));
    if (got >= 0 || errno != EINTR) return got == static_cast<ssize_t>(bytes);
  }
  return false;
}

}  // namespace phalanx::machine
