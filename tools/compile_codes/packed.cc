#include "compile_codes/packed.h"

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/text.h"
#include "base/try.h"
#include "codes/value_table.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {

base::Result<std::string> packed_source(std::string_view name, std::string_view text) {
  TRY_ASSIGN(std::string member, base::gzip(text, base::GzipLevel::kSmallest));
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

std::string by_columns(std::string_view rows, size_t width) {
  std::vector<std::string> columns(width);
  for (std::string_view row : base::split_lines(rows)) {
    const std::vector<std::string_view> cells = base::split(row, '\t');
    for (size_t i = 0; i < width; ++i) columns[i].append(cells[i]).push_back('\n');
  }
  return base::join(columns, "");
}

base::Result<std::string> packed_rows(const std::filesystem::path& folder, std::string_view columns, const PackRow& row) {
  const size_t width = base::split(columns, ',').size();
  std::string rows;
  for (const std::filesystem::path& path : files_in(folder)) {
    if (path.extension() != ".tsv") return wrong(path, "a table ends in .tsv");
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, {});
    if (!table.ok()) return wrong(path, table.error().message);
    if (table->columns != width) return wrong(path, fmt::format("has the columns {}", columns));
    for (size_t i = 0; i < table->cells.size(); i += width) {
      auto cells = table->cells.begin() + static_cast<std::ptrdiff_t>(i);
      base::Result<std::string> packed = row(path.stem().string(), {cells, cells + static_cast<std::ptrdiff_t>(width)});
      if (!packed.ok()) return wrong(path, packed.error().message);
      rows += *packed;
    }
  }
  return rows;
}

}  // namespace phalanx::codes
