// Code objects in another process: which function and file they are, and the line of an instruction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "machine/python/layout.h"
#include "machine/python/memory.h"

namespace phalanx::machine {

struct PythonFrame;

class CodeReader {
 public:
  CodeReader(const PythonLayout& layout, Memory& memory) : layout_(layout), memory_(memory) {}
  // place: as the frame holds it; copy: of free-threaded builds, which copy of the code runs. Nothing: no code object lies there, or
  // something in it makes no sense.
  std::optional<PythonFrame> frame(uint64_t code, uint64_t place, uint64_t copy);
  void forget() { codes_.clear(); }

 private:
  struct Code {
    std::string file, function, lines;
    int32_t first_line = 0;
  };
  const Code* code(uint64_t at);
  std::optional<int64_t> offset_in(uint64_t code, uint64_t place, uint64_t copy);
  bool is_a(uint64_t object, const char* type);
  bool text(uint64_t object, size_t most, std::string& into);
  bool bytes(uint64_t object, std::string& into);
  template <typename T>
  bool get(uint64_t at, T& into) {
    return memory_.read(at, &into, sizeof(into));
  }

  const PythonLayout& layout_;
  Memory& memory_;
  std::map<uint64_t, Code> codes_;
  uint64_t budget_ = 64 << 20;                          // bytes of line tables that may be read of one process
  std::map<std::string, uint64_t, std::less<>> types_;  // addresses of those seen
};

}  // namespace phalanx::machine
