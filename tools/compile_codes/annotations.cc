#include "compile_codes/annotations.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "codes/signature.h"
#include "codes/value_table.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kColumns = 5;       // words, code, role, decides, line
constexpr size_t kMessageWords = 3;  // column of the catalogue
constexpr size_t kMessageColumns = 7;

// Text as a pattern of RE2.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\.^$|()[]{}*+?").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

base::Result<std::set<std::string>> words_of(const fs::path& path) {
  TRY_ASSIGN(std::string text, read_file(path));
  TRY_ASSIGN(ParsedTable table, parse_value_table(text, {}));
  std::set<std::string> words;
  for (size_t i = kMessageWords; i < table.cells.size(); i += kMessageColumns) words.insert(table.cells[i]);
  return words;
}

char role_of(const std::string& name) {
  constexpr std::pair<std::string_view, Role> kNames[] = {
      {"root", Role::kRoot}, {"symptom", Role::kSymptom}, {"cascade", Role::kCascade}, {"benign", Role::kBenign}};
  for (const auto& [known, role] : kNames)
    if (known == name) return static_cast<char>('0' + static_cast<int>(role));
  return '0';
}

}  // namespace

base::Result<std::string> annotation_rows(const fs::path& annotations, const fs::path& catalogue, const std::set<std::string>& names,
                                          std::string& others) {
  std::string rows;
  for (const fs::path& path : files_in(annotations)) {
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<ParsedTable> table = parse_value_table(text, names);
    if (!table.ok()) return wrong(path, table.error().message);
    if (table->columns != kColumns) return wrong(path, "has the columns words, code, role, decides, line");
    TRY_ASSIGN(std::set<std::string> known, words_of(catalogue / path.filename()));
    for (size_t i = 0; i < table->cells.size(); i += kColumns) {
      const std::string &words = table->cells[i], &decides = table->cells[i + 3], &line = table->cells[i + 4];
      if (known.count(words) == 0) return wrong(path, fmt::format("the catalogue has no message with the words \"{}\"", words));
      if (line.find(words) == line.npos) return wrong(path, fmt::format("the example of \"{}\" does not contain these words", words));
      TRY_ASSIGN(std::string row, packed_row({table->cells[i + 1], std::string(1, role_of(table->cells[i + 2])), words,
                                              decides.empty() ? escaped(words) : decides, line}));
      others += words.substr(0, words.size() - 1) + "\n";
      rows += row;
    }
  }
  return rows;
}

}  // namespace phalanx::codes
