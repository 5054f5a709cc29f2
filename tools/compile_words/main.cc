// compile_words FOLDER SOURCE: words/zh-CN/ → the launcher's table of Chinese texts, as a C++ source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "compile_words/catalogue.h"

using namespace phalanx;

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: compile_words FOLDER SOURCE\n", stderr);
    return 2;
  }
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  words::Catalogue all;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    base::Status added = words::add_file(path.filename().string(), std::string(std::istreambuf_iterator<char>(in), {}), &all);
    if (added.ok()) continue;
    fmt::print(stderr, "{}: {}\n", path.string(), added.error().message);
    return 2;
  }
  const base::Result<std::string> source = words::table_source(all);
  if (!source.ok()) {
    fmt::print(stderr, "{}\n", source.error().message);
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << *source;
  out.close();
  return out && !all.empty() ? 0 : 1;
}
