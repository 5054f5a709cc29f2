// An environment as one file: a tar of it below a folder of its name, compressed, so that tar alone can unpack it. Editable installs from
// outside come along (carry.h). The first entry says where it was, and how much it is (extract.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "envmove/carry/carry.h"

namespace phalanx::envmove {

enum class Packing {
  kZstd,     // .tar.zst
  kGzip,     // .tar.gz
  kProgram,  // .run: a shell script, phalanx-env, and a .tar.zst; unpacks itself where neither Phalanx nor Python is
};
// By the end of the file's name. Error kUsage: another one.
base::Result<Packing> packing_of(const std::string& file);

struct Packed {
  uint64_t bytes = 0;  // of the archive
};

// Writes `file` under another name first, so that it is whole or not there. program: phalanx-env's path, of kProgram. Error kUnfit: the
// disk; kConfig: a file of the environment changed while it was read.
base::Result<Packed> pack(const Environment& environment, const Carried& carried, const sync::Aside& aside, Packing packing,
                          const std::string& file, const std::string& program, const Progress& progress);

// Where in a .run file the archive begins; 0: `file` is no such file. Error kConfig: it cannot be read.
base::Result<uint64_t> archive_begins(const os::Fd& file, const std::string& path);

}  // namespace phalanx::envmove
