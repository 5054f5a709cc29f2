// The pieces of probe_software, one file each; each fills its own fields of the facts.
#pragma once

#include "machine/probe.h"
#include "machine/rooted.h"
#include "machine/software/python_environment.h"

namespace phalanx::machine {

// python_packages.cc: packages, hidden, fingerprint. Names and versions are those of the folders NAME-VERSION.dist-info, which
// is where importlib.metadata looks a package up; the metadata itself is read only where the folder's name has no version.
void read_packages(const Rooted& files, SoftwareFacts& facts);
std::string normal_package_name(std::string_view name);  // PEP 503: "Flash_Attn" → "flash-attn"

void read_editables(const Rooted& files, SoftwareFacts& facts);  // editables.cc
void read_torch(const Rooted& files, SoftwareFacts& facts);      // torch_build.cc: torch_*, glibc_needed*
void read_shebangs(const Rooted& files, SoftwareFacts& facts);   // shebangs.cc
void read_extension_locks(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts);  // extension_locks.cc
void read_nccl_libraries(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts);   // nccl_library.cc
void read_nccl_conf(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts);        // nccl_conf.cc
void read_rank_variables(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts);   // machine/ranks/variables.cc

}  // namespace phalanx::machine
