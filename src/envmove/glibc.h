// Which C library programs and libraries need, and which one this host has. A wheel or package that was built on a newer system does not
// start on an older one: "version `GLIBC_2.34' not found".
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::envmove {

// 2.34 as 2034; 0: none.
using Glibc = unsigned;
std::string glibc_text(Glibc version);

// The highest version of glibc that this file cannot do without, from its version needs (System V gABI; LSB, "Symbol Versioning"). 0: it is
// no ELF file of this machine's kind, needs none, or is malformed.
Glibc glibc_needed(const os::Fd& file);
// The highest that libc.so.6 of this host defines; 0: it has none where glibc is, as Alpine.
Glibc glibc_here();
// Of a libc.so.6, for tests.
Glibc glibc_defined(const os::Fd& file);

}  // namespace phalanx::envmove
