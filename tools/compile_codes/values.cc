#include "compile_codes/values.h"

#include <fmt/format.h>

#include "base/try.h"
#include "codes/value_table.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {

base::Result<std::string> compile_values(const std::filesystem::path& folder, const std::set<std::string>& names) {
  std::string cells, tables;
  size_t number = 0;
  for (const std::filesystem::path& path : files_in(folder)) {
    if (path.extension() != ".tsv") return wrong(path, "a table ends in .tsv");
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, names);
    if (!table.ok()) return wrong(path, table.error().message);
    cells += fmt::format("constexpr std::string_view kCells{}[] = {{\n", number);
    for (const std::string& cell : table->cells) cells += "    " + literal(cell) + ",\n";
    cells += "};\n";
    tables += fmt::format("    {{{}, {}, kCells{}}},\n", literal(path.stem().string()), table->columns, number++);
  }
  return fmt::format(
      "// Compiled from codes/values/ by tools/compile_codes.\n#include \"codes/values.h\"\n\nnamespace phalanx::codes {{\nnamespace "
      "{{\n\n{}\nconstexpr ValueTable kTables[] = {{\n{}}};\n\n}}  // namespace\n\nstd::span<const ValueTable> value_tables() {{ return "
      "kTables; }}\n\n}}  // namespace phalanx::codes\n",
      cells, tables);
}

}  // namespace phalanx::codes
