#include "compile_codes/signatures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.h"
#include "base/yaml.h"
#include "codes/signature.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kKeys = {"code", "role", "literal", "pattern", "line", "other"};
constexpr std::array<std::string_view, 6> kRoles = {"root", "symptom", "cascade", "benign", "context", "suspect"};  // in the order of Role
static_assert(static_cast<int>(Role::kSuspect) == 5);
constexpr size_t kShortestLiteral = 4;

// The row as the launcher has it, and in `others` the line that must not match.
base::Result<std::string> row_source(const base::Json& row, const std::set<std::string>& names, std::string& others) {
  auto wrong = [](const std::string& what) { return base::fail(base::ErrorKind::kConfig, what); };
  if (!row.is_object() || row.size() != kKeys.size()) return wrong("has the keys code, role, literal, pattern, line, other");
  for (std::string_view key : kKeys)
    if (!base::get_string(row, key)) return wrong(fmt::format("{} is missing, or is no text", key));
  std::string code = *base::get_string(row, "code"), role = *base::get_string(row, "role");
  if (names.count(code) == 0) return wrong(code + " has no page");
  auto known = std::find(kRoles.begin(), kRoles.end(), role);
  if (known == kRoles.end()) return wrong(fmt::format("\"{}\" is no role: root, symptom, cascade, benign, context, suspect", role));
  if (base::get_string(row, "literal")->size() < kShortestLiteral) return wrong("the literal has fewer than four bytes");
  std::vector<std::string> cells = {code, std::to_string(known - kRoles.begin())};
  for (std::string_view key : {"literal", "pattern", "line"}) cells.push_back(*base::get_string(row, key));
  TRY_ASSIGN(const std::string other, packed_row({*base::get_string(row, "other")}));
  others += other;
  return packed_row(cells);
}

}  // namespace

base::Result<std::string> compile_signatures(const fs::path& codes, const AnnotatedSources& annotations,
                                             const std::set<std::string>& names) {
  std::string rows, others;
  for (const fs::path& path : files_in(codes / "signatures")) {
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<base::Yaml> yaml = base::parse_yaml(text);
    if (!yaml.ok()) return wrong(path, yaml.error().message);
    if (!yaml->value.is_array()) return wrong(path, "is a list of signatures");
    size_t number = 0;
    for (const base::Json& row : yaml->value) {
      base::Result<std::string> source = row_source(row, names, others);
      if (!source.ok()) return wrong(path, fmt::format("signature {}: {}", ++number, source.error().message));
      rows += *source;
      ++number;
    }
  }
  TRY_ASSIGN(std::string annotated, annotation_rows(annotations, others));
  TRY_ASSIGN(const std::string source, packed_source("signatures", rows + annotated));
  TRY_ASSIGN(const std::string other_lines, packed_source("others", others));
  return source + other_lines;
}

}  // namespace phalanx::codes
