#include "compile_codes/rules.h"

#include <fmt/format.h>

#include "base/try.h"
#include "codes/config_rule.h"
#include "codes/value_table.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {

namespace fs = std::filesystem;

base::Result<std::string> compile_rules(const fs::path& codes, const std::set<std::string>& names) {
  TRY_ASSIGN(std::string keys_text, read_file(codes / "values" / "config-keys.tsv"));
  TRY_ASSIGN(ParsedTable keys, parse_value_table(keys_text, names));
  std::set<std::string> sections;
  for (size_t i = 0; i < keys.cells.size(); i += keys.columns) sections.insert(keys.cells[i]);
  std::string rows;
  for (const fs::path& path : files_in(codes / "rules")) {
    TRY_ASSIGN(std::string text, read_file(path));
    base::Result<std::vector<WrittenRule>> rules = parse_config_rules(text, names, sections);
    if (!rules.ok()) return wrong(path, rules.error().message);
    for (const WrittenRule& r : *rules)
      rows += fmt::format("    {{{}, {}, {}, {},\n     {}, {}, {}, {},\n     {},\n     {},\n     {}}},\n", literal(r.code), literal(r.file),
                          r.ranks, literal(r.when), literal(r.default_key), r.default_value, literal(r.keys), literal(r.section),
                          literal(r.english), literal(r.chinese), literal(r.fix));
  }
  return fmt::format(
      "// Compiled from codes/rules/ by tools/compile_codes.\n#include \"codes/config_rule.h\"\n\nnamespace phalanx::codes {{\nnamespace "
      "{{\n\nconstexpr ConfigRule kRules[] = {{\n{}}};\n\n}}  // namespace\n\nstd::span<const ConfigRule> config_rules() {{ return kRules; "
      "}}\n\n}}  // namespace phalanx::codes\n",
      rows);
}

}  // namespace phalanx::codes
