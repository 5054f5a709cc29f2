// Where a sleeping thread is, without stopping it and without a debugger: its stack is read (process_vm_readv) from the stack pointer up,
// and every word that follows a call instruction of a mapped program file is taken for a return address, named by the nearest symbol the
// file exports. Not an unwinding: a frame that has ended can still lie on the stack, and a function that is not exported
// is its place in the file ("libtorch_cpu.so!+0x4a1b2c"), the same on every rank that has the same file. It is enough to tell "in
// gloo::barrier" from "in a lock", and it takes a millisecond. x86-64 and AArch64.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/software/elf_reader.h"

namespace phalanx::machine {

struct Mapping {
  uint64_t begin = 0, end = 0, offset = 0;
  std::string path;  // of a file that may be executed; empty: anything else
};
// Lines of /proc/<pid>/maps; those that are not executable files keep an empty path. At most 65,536.
std::vector<Mapping> parse_maps(std::string_view text);

// Functions an ELF file exports, by address in the file's own numbering. Every offset is checked.
class Symbols {
 public:
  explicit Symbols(std::string_view file);
  // The function that contains the byte at `offset` of the file; empty: none that has a name.
  std::string at_file_offset(uint64_t offset) const;
  // Of an exported symbol, in the file's own numbering; and what a mapping of the file adds to that. Nothing: no such symbol; the mapping
  // is of no loaded segment.
  std::optional<uint64_t> address_of(std::string_view name) const;
  std::optional<uint64_t> added_by(const Mapping& mapping) const;

 private:
  std::string_view table_, names_;
  std::vector<std::pair<uint64_t, uint64_t>> segments_;  // file offset → address, of each loaded segment
  std::vector<uint64_t> sizes_;
};

// "gloo::barrier" for "_ZN4gloo7barrierERNS_14BarrierOptionsE": without parameters and template arguments, at most 96 bytes.
std::string plain_function(const std::string& symbol);

// The stacks of one process's threads.
class StackScan {
 public:
  explicit StackScan(pid_t pid);
  // sp, pc: as /proc/<pid>/task/<tid>/syscall shows them. Innermost first, at most `most`; empty where memory may not be read.
  std::vector<std::string> frames(uint64_t sp, uint64_t pc, size_t stack_bytes, size_t most);
  const std::vector<Mapping>& maps() const { return maps_; }

 private:
  struct Module {
    std::unique_ptr<MappedFile> file;
    std::unique_ptr<Symbols> symbols;
  };
  const Mapping* executable(uint64_t address) const;
  std::string name_of(const Mapping& mapping, uint64_t address);
  pid_t pid_;
  std::vector<Mapping> maps_;
  std::map<std::string, Module> modules_;
  std::map<uint64_t, std::string> names_;  // by address: a symbol is searched for in all that a file exports
};

}  // namespace phalanx::machine
