// pack_agent PROGRAM LEVEL OUT.gz OUT.inc: compresses the agent's program for embedding (cmake/agent_image.cmake), and writes what the
// launcher says of it as C++ initializers: build id, SHA-256 and size of the program. LEVEL: fast or small. Exit 1 and a line on stderr
// when the program has no build id, or more than one.
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/gzip.h"
#include "base/sha256.h"
#include "os/files.h"

using namespace phalanx;

namespace {

constexpr size_t kMostBytes = 512 << 20;

// The content of the only NT_GNU_BUILD_ID note of ELF: sizes of name and content, type, "GNU", 20 bytes.
std::optional<std::string> build_id(std::string_view program) {
  constexpr std::string_view kNote("\4\0\0\0\24\0\0\0\3\0\0\0GNU\0", 16);
  constexpr size_t kIdBytes = 20;
  const size_t at = program.find(kNote);
  if (at == std::string_view::npos || program.size() - at - kNote.size() < kIdBytes) return std::nullopt;
  if (program.find(kNote, at + 1) != std::string_view::npos) return std::nullopt;
  std::string hex;
  for (unsigned char c : program.substr(at + kNote.size(), kIdBytes)) hex += fmt::format("{:02x}", c);
  return hex;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "pack_agent: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return fail("wants PROGRAM LEVEL OUT.gz OUT.inc");
  auto program = os::read_file(argv[1], kMostBytes);
  if (!program.ok()) return fail(program.error().render());
  std::optional<std::string> id = build_id(*program);
  if (!id) return fail(fmt::format("{} has not exactly one build id", argv[1]));
  base::Result<std::string> packed =
      base::gzip(*program, std::string_view(argv[2]) == "small" ? base::GzipLevel::kSmallest : base::GzipLevel::kFast);
  if (!packed.ok()) return fail(packed.error().render());
  for (const auto& [path, text] :
       {std::pair{argv[3], *packed}, {argv[4], fmt::format("\"{}\", \"{}\", {}\n", *id, base::sha256_hex(*program), program->size())}})
    if (auto written = os::write_file_atomic(path, text, 0644, os::Durable::kNo); !written.ok()) return fail(written.error().render());
  return 0;
}
