#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

struct Outline {
  std::vector<std::pair<int, std::string>> headings;  // line, "##"
  std::vector<std::string> commands;                  // every line of every ```sh block
};

Outline outline(const Source& readme) {
  Outline out;
  std::string fence;  // the language of the block we are in, "text" when it names none
  int line = 0;
  for (const std::string& text : split(readme.text(), '\n')) {
    ++line;
    if (text.starts_with("```")) fence = fence.empty() ? (text.size() > 3 ? text.substr(3) : "text") : "";
    else if (fence == "sh") out.commands.push_back(text);
    else if (fence.empty() && text.starts_with('#')) out.headings.emplace_back(line, text.substr(0, text.find_first_not_of('#')));
  }
  return out;
}

// "  base/   result, error" at some indentation; the name may hold several levels.
struct Branch {
  size_t indent = 0;
  std::string name;
  bool explained = false;
};

bool parse_branch(const std::string& line, Branch* branch) {
  size_t start = line.find_first_not_of(' ');
  if (start == std::string::npos) return false;
  size_t end = std::min(line.find(' ', start), line.size());
  if (line[end - 1] != '/') return false;
  *branch = {start, line.substr(start, end - start - 1), line.find_first_not_of(' ', end) != std::string::npos};
  return true;
}

}  // namespace

std::vector<Finding> check_house(const Source& hacking, const std::set<std::string>& folders) {
  std::vector<Finding> out;
  std::set<std::string> drawn;
  std::vector<Branch> open;
  bool inside = false;
  int line = 0;
  for (const std::string& text : split(hacking.text(), '\n')) {
    ++line;
    if (text.starts_with("```")) {
      if (inside) break;
      inside = true;
      continue;
    }
    Branch branch;
    if (!inside || !parse_branch(text, &branch)) continue;
    while (!open.empty() && open.back().indent >= branch.indent) open.pop_back();
    open.push_back(branch);
    std::string path;
    for (const Branch& part : open) path += (path.empty() ? "" : "/") + part.name;
    drawn.insert(path);
    bool ours = path.starts_with("src/") || path.starts_with("tests/");
    if (ours && !branch.explained) out.push_back({hacking.path(), line, "house", fmt::format("{}/ has no explanation", path)});
    if (ours && !folders.contains(path)) out.push_back({hacking.path(), line, "house", fmt::format("{}/ does not exist", path)});
  }
  for (const std::string& folder : folders)
    if (!drawn.contains(folder)) out.push_back({hacking.path(), 0, "house", fmt::format("{}/ is not in the picture", folder)});
  return out;
}

std::vector<Finding> check_folder_sizes(const std::set<std::string>& paths) {
  std::map<std::string, int> files;
  for (const std::string& path : paths)
    if (path.starts_with("src/") && (path.ends_with(".cc") || path.ends_with(".h"))) ++files[path.substr(0, path.rfind('/'))];
  std::vector<Finding> out;
  for (const auto& [folder, count] : files)
    if (count > kMaxFolderFiles)
      out.push_back({folder, 0, "folder-size", fmt::format("{} files; at most {}: divide it by idea", count, kMaxFolderFiles)});
  return out;
}

std::vector<Finding> check_readmes(const Source& english, const Source& chinese) {
  std::vector<Finding> out;
  Outline a = outline(english);
  Outline b = outline(chinese);
  size_t both = std::min(a.headings.size(), b.headings.size());
  for (size_t i = 0; i < both; ++i) {
    if (a.headings[i].second == b.headings[i].second) continue;
    out.push_back(
        {chinese.path(), b.headings[i].first, "readme",
         fmt::format("heading {} is '{}' here and '{}' in {}", i + 1, b.headings[i].second, a.headings[i].second, english.path())});
    break;
  }
  if (a.headings.size() != b.headings.size())
    out.push_back(
        {chinese.path(), 0, "readme", fmt::format("{} headings here, {} in {}", b.headings.size(), a.headings.size(), english.path())});
  if (a.commands != b.commands)
    out.push_back({chinese.path(), 0, "readme", fmt::format("the commands differ from those of {}", english.path())});
  return out;
}

std::vector<Finding> check_links(const Source& source, const std::set<std::string>& paths) {
  std::vector<Finding> out;
  if (!source.markdown()) return out;
  static const std::regex kLink(R"(\]\(([^)#: ]+)[^): ]*\))");
  std::filesystem::path folder = std::filesystem::path(source.path()).parent_path();
  const std::string& text = source.text();
  for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
    std::string target = (folder / it->str(1)).lexically_normal().string();
    if (target.ends_with('/')) target.pop_back();
    if (!paths.contains(target))
      out.push_back({source.path(), source.line_of(static_cast<size_t>(it->position())), "link", fmt::format("{} does not exist", target)});
  }
  return out;
}

}  // namespace phalanx::tidy
