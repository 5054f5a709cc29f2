// The Python stacks of a process, as faulthandler would print them, read from outside: every thread's functions, files and lines. Nothing
// is stopped, so a stack may change while it is read: it counts only if a second reading finds the same. What the memory holds is hostile:
// each pointer, count, text and loop is bounded, and an object that does not say it is of the expected type is not read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "machine/python/interpreter.h"
#include "os/clock.h"

namespace phalanx::machine {

struct PythonFrame {
  std::string file, function;  // printable, at most 512 and 160 bytes
  int64_t line = 0;            // 0: the instruction has none
};
PHALANX_FIELDS(PythonFrame, file, function, line);

struct PythonThread {
  int64_t tid = 0;                  // 0: which thread of the process it is cannot be told
  std::vector<PythonFrame> frames;  // innermost first, at most 64; with a problem only the outermost ones, which both readings had
  std::string problem;              // empty: the frames are all there are
};
struct PythonStacks {
  uint32_t version = 0;               // 0x030b
  std::vector<PythonThread> threads;  // at most 256
};

// tids: the threads of the process. Error kUnfit: the list of threads cannot be read.
base::Result<PythonStacks> read_python(const Interpreter& interpreter, Memory& memory, const std::vector<int64_t>& tids, os::Mono end);

// The whole of it. maps: of the process. memory_file: of open_memory(), or -1. Nothing: the process runs no Python. Error kUnfit: cannot
// tell, and why.
base::Result<std::optional<PythonStacks>> python_stacks(pid_t pid, const std::vector<Mapping>& maps, int memory_file, os::Mono end);

}  // namespace phalanx::machine
