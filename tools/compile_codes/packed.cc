#include "compile_codes/packed.h"

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/text.h"
#include "base/try.h"

namespace phalanx::codes {

base::Result<std::string> packed_source(std::string_view name, std::string_view text) {
  TRY_ASSIGN(std::string member, base::gzip(text));
  std::string bytes;
  for (size_t i = 0; i < member.size(); ++i)
    bytes += fmt::format("{}{},", i % 32 == 0 ? "\n    " : "", static_cast<unsigned char>(member[i]));
  return fmt::format(
      "// Compiled from codes/ by tools/compile_codes.\n#include \"codes/packed.h\"\n\nnamespace phalanx::codes {{\n\n"
      "Packed packed_{}() {{\n  static constexpr unsigned char kMember[] = {{{}}};\n"
      "  return {{{{reinterpret_cast<const char*>(kMember), sizeof(kMember)}}, {}}};\n}}\n\n}}  // namespace phalanx::codes\n",
      name, bytes, text.size());
}

base::Result<std::string> packed_row(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells)
    if (cell.find_first_of("\t\r\n") != cell.npos)
      return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\" has a tab or a line end", cell));
  return base::join(cells, "\t") + "\n";
}

}  // namespace phalanx::codes
