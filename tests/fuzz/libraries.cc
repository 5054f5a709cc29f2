// Any bytes as a shared library: what is read from it stays inside it, and comes to an end.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "machine/software/elf_reader.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto dynamic = machine::elf_dynamic(bytes)) {
    for (const std::string& name : dynamic->needed) PHALANX_CHECK(name.size() <= size);
    PHALANX_CHECK(!machine::version_less(dynamic->glibc, dynamic->glibc));
  }
  for (const char* name : {".rodata", ".nv_fatbin"}) {
    auto section = machine::elf_section(bytes, name);
    if (!section) continue;
    PHALANX_CHECK(section->data() >= bytes.data() && section->data() + section->size() <= bytes.data() + bytes.size());
    PHALANX_CHECK(machine::nccl_version_in(*section).size() <= 48);
  }
  for (const std::string& arch : machine::fatbin_archs(bytes, 256)) PHALANX_CHECK(arch.starts_with("sm_") || arch.starts_with("compute_"));
  return 0;
}
