// The CPython in a process: which version it is, and where its state lies. Found by the symbol _PyRuntime, which the program itself or its
// libpython exports.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/python/layout.h"
#include "machine/python/memory.h"
#include "machine/ranks/stack_scan.h"

namespace phalanx::machine {

struct Interpreter {
  uint64_t runtime = 0;  // the address of _PyRuntime
  PythonLayout layout;
};

// Nothing: the process runs no Python. Error kUnfit: it does, but which version cannot be told, or is one that cannot be read.
base::Result<std::optional<Interpreter>> find_interpreter(pid_t pid, const std::vector<Mapping>& maps, Memory& memory);

// 0x0308 for "/opt/conda/bin/python3.8" and "libpython3.8.so.1.0"; 0: the name says none.
uint32_t python_version_in(std::string_view path);
std::string python_version_text(uint32_t version);  // "3.8"

}  // namespace phalanx::machine
