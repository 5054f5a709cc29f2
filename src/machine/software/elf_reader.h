// What the doctor wants of a shared library, read from its headers: 64-bit little-endian ELF, mapped, every offset checked.
// A file of GBs costs the pages that are looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

// A file mapped for reading. A file that shrinks while it is mapped ends the process with SIGBUS: the probe runs each part in a
// child of its own, so that costs the part and no more.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }  // empty: could not be opened, is no regular file, or is empty

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

struct ElfDynamic {
  std::vector<std::string> needed;  // DT_NEEDED
  std::string soname, rpath, runpath;
  std::string glibc;  // the highest GLIBC_x.y it needs: "2.34"; empty: none
};

// bytes: the whole file. Nothing: not an ELF file of this kind, or a damaged one.
std::optional<std::string_view> elf_section(std::string_view bytes, std::string_view name);
std::optional<ElfDynamic> elf_dynamic(std::string_view bytes);

// The GPU code in a section .nv_fatbin: "sm_80" for machine code, "compute_90" for PTX; sorted, each once. Fat binaries are one
// container per compiled module, a header before each; the walk goes from header to header (offsets verified on NVIDIA's own
// libraries of CUDA 13) and stops after max_modules, or when the last 256 brought nothing new.
std::vector<std::string> fatbin_archs(std::string_view section, size_t max_modules = 4096);

// "2.20.5+cuda12.4" from "NCCL version 2.20.5+cuda12.4" in a section's text; empty: not there.
std::string nccl_version_in(std::string_view text);

// True of "2.9" and "2.36": dotted numbers compared part by part, missing parts as 0, what is no digit ends the number.
bool version_less(std::string_view a, std::string_view b);

}  // namespace phalanx::machine
