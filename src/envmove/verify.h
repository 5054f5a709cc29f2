// Whether an environment works where it lies: what its files, its records and its Python say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "envmove/environment.h"
#include "envmove/rehome.h"

namespace phalanx::envmove {

// One thing that is wrong. The code has a page (codes/).
struct Flaw {
  std::string_view code;  // "ENV-MOVED"
  bool fatal = false;     // programs of the environment will fail
  std::string path;       // absolute: what it was seen on
  std::string detail;     // "the former place, /opt/llm"; may be empty
};

struct VerifyOptions {
  bool hashes = true;  // compares files with the hashes in their packages' records; reads them all
  bool start_python = true;
};

// Looks at everything and changes nothing. Ordered: fatal ones first, then by code and path. Waits for the disk and, for at most
// kPythonSeconds, for the environment's own Python.
inline constexpr int kPythonSeconds = 30;
base::Result<std::vector<Flaw>> verify(const Environment& environment, const VerifyOptions& options, const Progress& progress);

}  // namespace phalanx::envmove
