// compile_codes FOLDER OUTPUT: the pages of codes/ → the table of the launcher (src/codes/code.h), as a C++ source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/text.h"
#include "codes/page.h"

namespace {

namespace fs = std::filesystem;
using base::Language;

constexpr const char* kChinese = ".zh-CN.md";

base::Error wrong(const fs::path& path, const std::string& what) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}: {}", path.string(), what));
}

base::Result<std::string> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return wrong(path, "cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

base::Result<codes::Page> read_page(const fs::path& path, Language language) {
  TRY_ASSIGN(std::string text, read(path));
  base::Result<codes::Page> page = codes::parse_page(text, language);
  if (!page.ok()) return wrong(path, page.error().message);
  return page;
}

base::Result<std::string> read_title(const fs::path& path) {
  TRY_ASSIGN(std::string text, read(path));
  std::string_view line = base::trim(text);
  if (!line.starts_with("# ") || line.find('\n') != line.npos) return wrong(path, "has one line, \"# \" and the title of the group");
  return std::string(line.substr(2));
}

// A C++ string literal, a line of text a line.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n\"\n     \"";
    else out += c;
  }
  return out + "\"";
}

std::string both(const std::string& english, const std::string& chinese) {
  return fmt::format("{{{},\n     {}}}", literal(english), literal(chinese));
}

bool is_code(std::string_view name) {
  return name.find('-') != name.npos && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == name.npos;
}

std::vector<fs::path> sorted(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class Table {
 public:
  base::Status add_part(const fs::path& folder, const char* part, bool asks) {
    for (const fs::path& group : sorted(folder))
      if (fs::is_directory(group)) TRY(add_group(group, part, asks));
    return base::ok();
  }

  std::string source() const {
    return fmt::format(
        "// Compiled from codes/ by tools/codes.\n#include \"codes/code.h\"\n\nnamespace codes {{\nnamespace {{\n\n"
        "constexpr Group kGroups[] = {{\n{}}};\n\nconstexpr Code kCodes[] = {{\n{}}};\n\n}}  // namespace\n\n"
        "std::span<const Code> all() {{ return kCodes; }}\nstd::span<const Group> groups() {{ return kGroups; }}\n\n}}  // namespace "
        "codes\n",
        groups_, codes_);
  }

 private:
  base::Status add_group(const fs::path& folder, const char* part, bool asks) {
    TRY_ASSIGN(std::string english, read_title(folder / "README.md"));
    TRY_ASSIGN(std::string chinese, read_title(folder / (std::string("README") + kChinese)));
    groups_ += fmt::format("    {{Part::{}, {},\n     {}}},\n", part, literal(folder.filename().string()), both(english, chinese));
    for (const fs::path& path : sorted(folder)) {
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
    TRY_ASSIGN(codes::Page page, read_page(path, Language::kEnglish));
    TRY_ASSIGN(codes::Page other, read_page(path.parent_path() / (name + kChinese), Language::kChinese));
    for (const codes::Page* p : {&page, &other})
      if (p->question.empty() == asks) return wrong(path, asks ? "a check's page asks a question" : "only a check's page asks a question");
    if (!other.source.empty()) return wrong(path, "the source stands on the English page");
    if (page.title.ends_with('.')) return wrong(path, "a title has no full stop");
    codes_ += fmt::format("    {{{}, &kGroups[{}],\n     {},\n     {},\n     {},\n     {},\n     {}}},\n", literal(name), group_count_,
                          both(page.title, other.title), both(page.question, other.question), both(page.why, other.why),
                          both(page.fix, other.fix), literal(page.source));
    return base::ok();
  }

  std::string groups_, codes_;
  size_t group_count_ = 0;
  std::map<std::string, fs::path> paths_;
};

base::Status compile(const fs::path& folder, const fs::path& output) {
  Table table;
  TRY(table.add_part(folder / "checks", "kChecks", true));
  TRY(table.add_part(folder / "runs", "kRuns", false));
  std::ofstream file(output, std::ios::binary);
  file << table.source();
  file.close();
  if (!file) return wrong(output, "cannot be written");
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: compile_codes FOLDER OUTPUT\n", stderr);
    return 2;
  }
  base::Status done = compile(argv[1], argv[2]);
  if (done.ok()) return 0;
  std::fputs(done.error().render().c_str(), stderr);
  return base::exit_code(done.error().kind);
}
