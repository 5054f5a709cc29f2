#include "compile_codes/advice.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "base/try.h"
#include "codes/advice.h"
#include "codes/value_table.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kColumns = 4;         // words, line, en, zh
constexpr size_t kShortestPart = 3;    // of the words
constexpr size_t kShortestWords = 12;  // all parts: less stands in many messages

base::Result<std::string> advice_row(const std::vector<std::string>& cells) {
  auto fail = [&](std::string_view what) { return base::fail(base::ErrorKind::kConfig, fmt::format("{}: {}", cells[0], what)); };
  const std::vector<std::string_view> parts = base::split(cells[0], '|');
  size_t letters = 0;
  for (std::string_view part : parts) {
    if (part.size() < kShortestPart) return fail("a part of the words is too short");
    letters += part.size();
  }
  if (letters < kShortestWords) return fail("the words are too short");
  if (!has_words(cells[1], parts)) return fail("the line does not contain the words");
  if (cells[2].empty() || cells[3].empty()) return fail("the advice is missing in one of the languages");
  return packed_row({cells[0], cells[2], cells[3]});
}

}  // namespace

base::Result<std::string> compile_advice(const fs::path& folder) {
  std::string rows;
  std::set<std::string> known;
  for (const fs::path& path : files_in(folder)) {
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, {});
    if (!table.ok()) return wrong(path, table.error().message);
    if (table->columns != kColumns) return wrong(path, "has the columns words, line, en, zh");
    for (size_t i = 0; i < table->cells.size(); i += kColumns) {
      auto row = table->cells.begin() + static_cast<std::ptrdiff_t>(i);
      if (!known.insert(*row).second) return wrong(path, fmt::format("{}: is there twice", *row));
      base::Result<std::string> packed = advice_row({row, row + kColumns});
      if (!packed.ok()) return wrong(path, packed.error().message);
      rows += *packed;
    }
  }
  return packed_source("advice", rows);
}

}  // namespace phalanx::codes
