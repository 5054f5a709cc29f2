#include "compile_codes/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "codes/packed.h"
#include "codes/page.h"
#include "compile_codes/packed.h"
#include "compile_codes/source_text.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;
using base::Language;

constexpr const char* kChinese = ".zh-CN.md";

base::Result<Page> read_page(const fs::path& path, Language language) {
  TRY_ASSIGN(std::string text, read_file(path));
  base::Result<Page> page = parse_page(text, language);
  if (!page.ok()) return wrong(path, page.error().message);
  return page;
}

base::Result<std::string> read_title(const fs::path& path) {
  TRY_ASSIGN(std::string text, read_file(path));
  std::string_view line = base::trim(text);
  if (!line.starts_with("# ") || line.find('\n') != line.npos) return wrong(path, "has one line, \"# \" and the title of the group");
  return std::string(line.substr(2));
}

std::string both(const std::string& english, const std::string& chinese) {
  return fmt::format("{{{},\n     {}}}", literal(english), literal(chinese));
}

bool is_code(std::string_view name) {
  return name.find('-') != name.npos && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == name.npos;
}

class Table {
 public:
  base::Status add_part(const fs::path& folder, const char* part, bool asks) {
    for (const fs::path& group : files_in(folder))
      if (fs::is_directory(group)) TRY(add_group(group, part, asks));
    return base::ok();
  }

  base::Result<PageTable> finish() const {
    PageTable table;
    for (const auto& [name, path] : paths_) table.names.insert(name);
    TRY_ASSIGN(table.source, packed_source("pages", codes_));
    table.source += fmt::format(
        "\n#include \"codes/code.h\"\n\nnamespace phalanx::codes {{\nnamespace {{\n\nconstexpr Group kGroups[] = {{\n{}}};\n\n"
        "}}  // namespace\n\nstd::span<const Group> groups() {{ return kGroups; }}\n\n}}  // namespace phalanx::codes\n",
        groups_);
    return table;
  }

 private:
  base::Status add_group(const fs::path& folder, const char* part, bool asks) {
    TRY_ASSIGN(std::string english, read_title(folder / "README.md"));
    TRY_ASSIGN(std::string chinese, read_title(folder / (std::string("README") + kChinese)));
    groups_ += fmt::format("    {{Part::{}, {},\n     {}}},\n", part, literal(folder.filename().string()), both(english, chinese));
    for (const fs::path& path : files_in(folder)) {
      std::string name = path.filename().string();
      if (name.ends_with(kChinese)) {
        fs::path other = folder / (name.substr(0, name.size() - std::string_view(kChinese).size()) + ".md");
        if (!fs::exists(other)) return wrong(path, "there is no English page of this name");
      } else if (name != "README.md") {
        TRY(add_code(path, asks));
      }
    }
    ++group_count_;
    return base::ok();
  }

  base::Status add_code(const fs::path& path, bool asks) {
    std::string name = path.stem().string();
    if (path.extension() != ".md" || !is_code(name)) return wrong(path, "the name of a page is its code, and .md or .zh-CN.md");
    if (auto [other, fresh] = paths_.emplace(name, path); !fresh)
      return wrong(path, "the code has a page already: " + other->second.string());
    TRY_ASSIGN(Page page, read_page(path, Language::kEnglish));
    TRY_ASSIGN(Page other, read_page(path.parent_path() / (name + kChinese), Language::kChinese));
    for (const Page* p : {&page, &other})
      if (p->question.empty() == asks) return wrong(path, asks ? "a check's page asks a question" : "only a check's page asks a question");
    if (!other.source.empty()) return wrong(path, "the source stands on the English page");
    if (page.title.ends_with('.')) return wrong(path, "a title has no full stop");
    std::vector<std::string> cells = {name,          std::to_string(group_count_),
                                      page.title,    other.title,
                                      page.question, other.question,
                                      page.why,      other.why,
                                      page.fix,      other.fix,
                                      page.source};
    for (std::string& cell : cells) std::replace(cell.begin(), cell.end(), '\n', kLineInCell);
    TRY_ASSIGN(std::string row, packed_row(cells));
    codes_ += row;
    return base::ok();
  }

  std::string groups_, codes_;
  size_t group_count_ = 0;
  std::map<std::string, fs::path> paths_;
};

}  // namespace

base::Result<PageTable> compile_pages(const fs::path& folder) {
  Table table;
  TRY(table.add_part(folder / "checks", "kChecks", true));
  TRY(table.add_part(folder / "runs", "kRuns", false));
  TRY(table.add_part(folder / "environments", "kEnvironments", false));
  return table.finish();
}

}  // namespace phalanx::codes
