#include "compile_codes/signatures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.h"
#include "base/yaml.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kKeys = {"code", "role", "literal", "pattern", "line", "other"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRoles = {
    {{"root", "kRoot"}, {"symptom", "kSymptom"}, {"cascade", "kCascade"}, {"benign", "kBenign"}, {"context", "kContext"}}};
constexpr size_t kShortestLiteral = 4;

base::Result<std::string> row_source(const base::Json& row, const std::set<std::string>& names) {
  auto wrong = [](const std::string& what) { return base::fail(base::ErrorKind::kConfig, what); };
  if (!row.is_object() || row.size() != kKeys.size()) return wrong("has the keys code, role, literal, pattern, line, other");
  for (std::string_view key : kKeys)
    if (!base::get_string(row, key)) return wrong(fmt::format("{} is missing, or is no text", key));
  std::string code = *base::get_string(row, "code"), role = *base::get_string(row, "role");
  if (names.count(code) == 0) return wrong(code + " has no page");
  auto known = std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& r) { return r.first == role; });
  if (known == kRoles.end()) return wrong(fmt::format("\"{}\" is no role: root, symptom, cascade, benign, context", role));
  if (base::get_string(row, "literal")->size() < kShortestLiteral) return wrong("the literal has fewer than four bytes");
  std::string out = fmt::format("    {{{}, Role::{}", literal(code), known->second);
  for (std::string_view key : {"literal", "pattern", "line", "other"}) out += ",\n     " + literal(*base::get_string(row, key));
  return out + "},\n";
}

}  // namespace

base::Result<std::string> compile_signatures(const fs::path& folder, const std::set<std::string>& names) {
  std::string rows;
  for (const fs::path& path : files_in(folder)) {
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<base::Yaml> yaml = base::parse_yaml(text);
    if (!yaml.ok()) return wrong(path, yaml.error().message);
    if (!yaml->value.is_array()) return wrong(path, "is a list of signatures");
    size_t number = 0;
    for (const base::Json& row : yaml->value) {
      base::Result<std::string> source = row_source(row, names);
      if (!source.ok()) return wrong(path, fmt::format("signature {}: {}", ++number, source.error().message));
      rows += *source;
      ++number;
    }
  }
  return fmt::format(
      "// Compiled from codes/signatures/ by tools/compile_codes.\n#include \"codes/signature.h\"\n\nnamespace phalanx::codes "
      "{{\nnamespace {{\n\n"
      "constexpr Signature kSignatures[] = {{\n{}}};\n\n}}  // namespace\n\nstd::span<const Signature> signatures() {{ return kSignatures; "
      "}}\n\n}}  // namespace phalanx::codes\n",
      rows);
}

}  // namespace phalanx::codes
