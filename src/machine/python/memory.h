// The memory of another process, read from outside and never stopped or changed. What is read is hostile: whoever reads it checks every
// pointer, count and text.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "os/fd.h"

namespace phalanx::machine {

class Memory {
 public:
  virtual ~Memory() = default;
  // All `bytes` of them, or false: not mapped, not allowed, gone.
  virtual bool read(uint64_t address, void* into, size_t bytes) = 0;
};

// /proc/<pid>/mem. The kernel asks for the right to read when the file is opened, not at each read: with kernel.yama.ptrace_scope=1 only an
// ancestor of the process gets it, so the agent opens the files and its child, which does the looking, reads.
os::Fd open_memory(pid_t pid);
// Of these processes and all they have started, those that can be opened; at most 256.
using OpenedMemories = std::map<pid_t, os::Fd>;
OpenedMemories open_memories(const std::vector<pid_t>& roots);

class ProcessMemory : public Memory {
 public:
  // opened: of open_memory(), which must outlive this; -1: opened here.
  ProcessMemory(pid_t pid, int opened);
  bool read(uint64_t address, void* into, size_t bytes) override;
  // Empty: it may be read. Else why not, and how to allow it: "… (kernel.yama.ptrace_scope is 2)".
  const std::string& problem() const { return problem_; }

 private:
  os::Fd own_;
  int file_ = -1;
  std::string problem_;
};

}  // namespace phalanx::machine
