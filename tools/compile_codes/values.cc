#include "compile_codes/values.h"

#include <vector>

#include "base/try.h"
#include "codes/value_table.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {

base::Result<std::string> compile_values(const std::filesystem::path& folder, const std::set<std::string>& names) {
  std::string rows;
  for (const std::filesystem::path& path : files_in(folder)) {
    if (path.extension() != ".tsv") return wrong(path, "a table ends in .tsv");
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, names);
    if (!table.ok()) return wrong(path, table.error().message);
    for (size_t i = 0; i < table->cells.size(); i += table->columns) {
      std::vector<std::string> row = {path.stem().string()};
      for (size_t j = 0; j < table->columns; ++j) row.push_back(table->cells[i + j]);
      TRY_ASSIGN(const std::string line, packed_row(row));
      rows += line;
    }
  }
  return packed_source("values", rows);
}

}  // namespace phalanx::codes
