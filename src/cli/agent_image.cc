#include "cli/agent_image.h"

#include <cstddef>

__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "phalanx_agent_image_begin:\n"
    ".incbin \"" PHALANX_AGENT_IMAGE
    ".gz\"\n"
    "phalanx_agent_image_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char phalanx_agent_image_begin[];
extern const char phalanx_agent_image_end[];
}

namespace phalanx::cli {
namespace {

struct Facts {
  const char* build;
  const char* sha256;
  size_t bytes;
};
constexpr Facts kFacts = {
#include PHALANX_AGENT_FACTS
};

}  // namespace

hosts::AgentProgram agent_image() {
  const auto length = static_cast<size_t>(phalanx_agent_image_end - phalanx_agent_image_begin);
  return {.build = kFacts.build, .sha256 = kFacts.sha256, .bytes = kFacts.bytes, .gzip = {phalanx_agent_image_begin, length}};
}

}  // namespace phalanx::cli
