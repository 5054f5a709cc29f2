// The words of data.files to a list of files.
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/data/open_set.h"

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::data {
namespace {

namespace fs = std::filesystem;

base::Error names_nothing(std::string_view word, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} matches no data file", base::quote(word))).because(std::move(why));
}

// Sorted by bytes, so that every host has the same order whatever its locale.
base::Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with('.') && it->is_regular_file(ignored)) files.push_back(it->path().string());
  }
  if (error) return names_nothing(folder, error.message());
  if (files.empty()) return names_nothing(folder, "the folder contains no files");
  std::sort(files.begin(), files.end());
  return files;
}

base::Result<std::vector<std::string>> matches_of(const std::string& pattern) {
  glob_t found{};
  const int code = glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (code == GLOB_NOMATCH) return names_nothing(pattern, "nothing matches it");
  if (code != 0) return names_nothing(pattern, code == GLOB_NOSPACE ? "out of memory" : "a folder cannot be read");
  std::erase_if(files, [](const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
  });
  if (files.empty()) return names_nothing(pattern, "only folders match it");
  std::sort(files.begin(), files.end());
  return files;
}

base::Result<std::vector<std::string>> files_of(const std::string& word) {
  std::error_code error;
  if (fs::is_directory(word, error)) return files_in(word);
  if (fs::exists(word, error)) return std::vector<std::string>{word};  // a name may hold a bracket
  if (word.find_first_of("*?[") != std::string::npos) return matches_of(word);
  return names_nothing(word, error ? error.message() : "no such file");
}

}  // namespace

base::Result<std::vector<std::string>> find_files(const std::string& list) {
  std::vector<std::string> files;
  std::set<std::string> seen;
  for (std::string_view part : base::split(std::string_view(list), ',')) {
    const std::string word(base::trim(part));
    if (word.empty()) continue;
    TRY_ASSIGN(std::vector<std::string> found, files_of(word));
    for (std::string& path : found)
      if (seen.insert(path).second) files.push_back(std::move(path));
    if (files.size() > kMaxFiles)
      return base::fail(base::ErrorKind::kConfig, fmt::format("data.files names more than {} files", kMaxFiles))
          .with_hint("merge small files into larger ones");
  }
  if (files.empty()) return base::fail(base::ErrorKind::kConfig, "data.files names no files");
  return files;
}

}  // namespace phalanx::engine::data
