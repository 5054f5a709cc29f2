#include "compile_codes/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "codes/advice.h"
#include "codes/value_table.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumns = "words, code, role, decides, line, en, zh";
constexpr size_t kWidth = 7;
constexpr std::string_view kAsAbove = "=";  // in en and zh: the answer of the row above
constexpr size_t kLongestAnswer = 450;
constexpr size_t kMessageWords = 3;  // column of the catalogue
constexpr size_t kMessageColumns = 7;

// Fragments, divided by "|", as a pattern of RE2.
std::string pattern_of(std::string_view words) {
  std::string out;
  for (char c : words) {
    if (c == '|') {
      out += ".*";
      continue;
    }
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

base::Result<Annotation> annotation(const std::vector<std::string>& cells, const std::set<std::string>& names) {
  auto wrong = [&](std::string_view what) { return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": {}", cells[0], what)); };
  constexpr std::array<std::string_view, 4> kRoles = {"root", "symptom", "cascade", "benign"};  // in the order of Role
  Annotation out{.code = cells[1], .decides = cells[3], .line = cells[4], .english = cells[5], .chinese = cells[6]};
  if (!between_words(out.line, base::split(cells[0], '|'))) return wrong("the example does not contain these words");
  if (out.code.empty() && out.english.empty()) return wrong("neither a code nor an answer");
  if (!out.code.empty() && names.count(out.code) == 0) return wrong(out.code + " has no page");
  if (out.english == kAsAbove || out.chinese == kAsAbove) return wrong("\"=\" stands in both languages, below a row with an answer");
  if (out.english.empty() != out.chinese.empty()) return wrong("the answer is missing in one of the languages");
  if (out.english.size() > kLongestAnswer) return wrong(fmt::format("the answer has more than {} bytes", kLongestAnswer));
  if (out.is_answer() && !out.decides.empty()) return wrong("with values that decide it is a signature, and has no answer");
  if (out.code.empty()) return cells[2].empty() ? base::Result<Annotation>(out) : wrong("a role without a code");
  const auto role = std::find(kRoles.begin(), kRoles.end(), cells[2]);
  if (role == kRoles.end()) return wrong(fmt::format("\"{}\" is no role: root, symptom, cascade, benign", cells[2]));
  out.role = static_cast<Role>(role - kRoles.begin());
  if (out.code.starts_with("LOG-") && out.role != Role::kCascade && out.role != Role::kBenign)
    return wrong(out.code + " is a consequence, or harmless: cascade or benign");
  return out;
}

base::Result<Annotations> read_table(const fs::path& path, const std::set<std::string>& known, const std::set<std::string>& names) {
  TRY_ASSIGN(std::string text, read_file(path));
  base::Result<ParsedTable> table = parse_value_table(text, {});
  if (!table.ok()) return wrong(path, table.error().message);
  if (table->columns != kWidth) return wrong(path, fmt::format("has the columns {}", kColumns));
  Annotations out;
  std::string english, chinese;  // of the last answer
  for (size_t i = 0; i < table->cells.size(); i += kWidth) {
    auto first = table->cells.begin() + static_cast<std::ptrdiff_t>(i);
    std::vector<std::string> cells(first, first + static_cast<std::ptrdiff_t>(kWidth));
    if (cells[5] == kAsAbove && cells[6] == kAsAbove && !english.empty()) cells[5] = english, cells[6] = chinese;
    else english = cells[5], chinese = cells[6];
    if (known.count(cells[0]) == 0) return wrong(path, fmt::format("the catalogue has no message with the words \"{}\"", cells[0]));
    base::Result<Annotation> row = annotation(cells, names);
    if (!row.ok()) return wrong(path, row.error().message);
    if (!out.emplace(cells[0], std::move(*row)).second) return wrong(path, fmt::format("\"{}\" is there twice", cells[0]));
  }
  return out;
}

}  // namespace

base::Result<AnnotatedSources> read_annotations(const fs::path& codes, const std::set<std::string>& names) {
  AnnotatedSources out;
  for (const fs::path& path : files_in(codes / "annotations")) {
    TRY_ASSIGN(std::set<std::string> known, words_of(codes / "catalogue" / path.filename()));
    TRY_ASSIGN(out[path.stem().string()], read_table(path, known, names));
  }
  return out;
}

base::Result<std::string> annotation_rows(const AnnotatedSources& sources, std::string& others) {
  std::string rows;
  for (const auto& [source, annotations] : sources)
    for (const auto& [words, row] : annotations) {
      if (row.is_answer()) continue;
      const std::string role(1, static_cast<char>('0' + static_cast<int>(row.role)));
      TRY_ASSIGN(std::string packed, packed_row({row.code, role, words.substr(0, words.find('|')),
                                                 row.decides.empty() ? pattern_of(words) : row.decides, row.line}));
      others += words.substr(0, words.size() - 1) + "\n";
      rows += packed;
    }
  return rows;
}

}  // namespace phalanx::codes
