#include "compile_codes/catalogue.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "codes/value_table.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kColumns = 7;  // file, function, severity, words, slots, first, last
constexpr size_t kShortestWords = 12;

// The row as the launcher has it: without the function and the kinds of slots, which only people read.
base::Result<std::string> packed_message(const std::string& source, const std::vector<std::string>& cells) {
  std::vector<std::string_view> words = base::split(cells[3], '|');
  if (words.size() > 2 || words[0].size() < kShortestWords)
    return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": one or two fragments, the first of 12 bytes or more", cells[3]));
  std::string then = words.size() > 1 ? std::string(words[1]) : "";
  return packed_row({source, cells[0], cells[2], std::string(words[0]), then, cells[5], cells[6]});
}

}  // namespace

base::Result<std::string> compile_catalogue(const fs::path& folder) {
  std::string rows;
  for (const fs::path& path : files_in(folder)) {
    if (path.extension() != ".tsv") continue;
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, {});
    if (!table.ok()) return wrong(path, table.error().message);
    if (table->columns != kColumns) return wrong(path, "has the columns file, function, severity, words, slots, first, last");
    for (size_t i = 0; i < table->cells.size(); i += kColumns) {
      auto row = table->cells.begin() + static_cast<std::ptrdiff_t>(i);
      base::Result<std::string> packed = packed_message(path.stem().string(), {row, row + kColumns});
      if (!packed.ok()) return wrong(path, packed.error().message);
      rows += *packed;
    }
  }
  return packed_source("catalogue", rows);
}

}  // namespace phalanx::codes
