// The style test: tidy ROOT reads every text file of the checkout, applies the rules, and prints findings as file:line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tidy/rules.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

// Not ours to style: what git keeps, what a build makes, and test data as it was found.
const std::set<std::string> kSkippedFolders = {".git", "build", "runs", "tests/data", "tests/fuzz/corpus"};
const fs::path kTables = "codes/values";  // their cells may be texts that are shown
const std::set<std::string> kTextEndings = {".h", ".cc", ".txt", ".cmake", ".md", ".sh", ".awk", ".yaml", ".py"};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// By its ending, or a script: an executable text without one.
bool is_text(const fs::path& path) {
  if (kTextEndings.contains(path.extension().string())) return true;
  return !path.has_extension() && read(path).starts_with("#!");
}

struct Tree {
  std::vector<tidy::Source> sources;
  std::set<std::string> paths;    // every file and folder
  std::set<std::string> folders;  // that HACKING.md must explain
};

// The folders of a file that HACKING.md must explain: two levels of src/, and the first of tests/.
void add_folders(const fs::path& file, std::set<std::string>* folders) {
  bool src = *file.begin() == "src";
  for (fs::path folder = file.parent_path(); folder.has_parent_path(); folder = folder.parent_path())
    if ((src && std::distance(folder.begin(), folder.end()) <= 3) || (*file.begin() == "tests" && folder.parent_path() == "tests"))
      folders->insert(folder.string());
}

Tree walk(const fs::path& root) {
  Tree tree;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    fs::path relative = it->path().lexically_relative(root);
    if (relative.begin()->string() != ".git") tree.paths.insert(relative.string());
    if (it->is_directory()) {
      if (!kSkippedFolders.contains(relative.string())) continue;
      add_folders(relative / "any", &tree.folders);
      if (*relative.begin() == "tests")
        for (const auto& entry : fs::recursive_directory_iterator(it->path()))
          tree.paths.insert(entry.path().lexically_relative(root).string());
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file()) continue;
    add_folders(relative, &tree.folders);
    if (is_text(it->path()) || relative.parent_path() == kTables) tree.sources.emplace_back(relative.string(), read(it->path()));
  }
  std::sort(tree.sources.begin(), tree.sources.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
  return tree;
}

std::vector<tidy::Finding> check(const Tree& tree, const fs::path& root) {
  tidy::Layers layers = tidy::parse_layers(read(root / "src/CMakeLists.txt"));
  std::vector<tidy::Finding> out = layers.findings;
  auto add = [&out](std::vector<tidy::Finding> more) { std::move(more.begin(), more.end(), std::back_inserter(out)); };
  const tidy::Known known = tidy::known_of(tree.paths, tree.sources);
  for (const tidy::Source& source : tree.sources) {
    if (fs::path(source.path()).parent_path() == kTables) continue;
    add(tidy::check_mentions(source, known));
    add(tidy::check_text(source));
    add(tidy::check_names(source));
    add(tidy::check_functions(source));
    add(tidy::check_header(source));
    add(tidy::check_namespace(source));
    add(tidy::check_banned(source));
    add(tidy::check_words(source));
    add(tidy::check_chinese(source));
    add(tidy::check_includes(source, layers));
    add(tidy::check_links(source, tree.paths));
  }
  add(tidy::check_catalogue(tree.sources));
  add(tidy::check_errors(tree.sources));
  add(tidy::check_house(tidy::Source("HACKING.md", read(root / "HACKING.md")), tree.folders));
  add(tidy::check_folder_sizes(tree.paths));
  add(tidy::check_layers_picture(tidy::Source("ARCHITECTURE.md", read(root / "ARCHITECTURE.md")), layers));
  add(tidy::check_readmes(tidy::Source("README.md", read(root / "README.md")),
                          tidy::Source("README.zh-CN.md", read(root / "README.zh-CN.md"))));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: tidy ROOT\n");
    return 2;
  }
  Tree tree = walk(argv[1]);
  std::vector<tidy::Finding> findings = check(tree, argv[1]);
  for (const tidy::Finding& finding : findings) fmt::print("{}:{}: [{}] {}\n", finding.path, finding.line, finding.rule, finding.what);
  fmt::print("{} files, {} findings\n", tree.sources.size(), findings.size());
  return findings.empty() && !tree.sources.empty() ? 0 : 1;
}
