#include "machine/gpu/nvml_image.h"

// cmake/nvml_reader.cmake builds the program and names it here.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "phalanx_nvml_image_begin:\n"
    ".incbin \"" PHALANX_NVML_READER
    "\"\n"
    "phalanx_nvml_image_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char phalanx_nvml_image_begin[];
extern const char phalanx_nvml_image_end[];
}

namespace phalanx::machine {

std::string_view nvml_image() { return {phalanx_nvml_image_begin, static_cast<size_t>(phalanx_nvml_image_end - phalanx_nvml_image_begin)}; }

}  // namespace phalanx::machine
