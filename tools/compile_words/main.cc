// compile_words FOLDER SOURCE: words/zh-CN/ → the launcher's table of Chinese texts, as a C++ source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/gzip.h"
#include "base/try.h"
#include "compile_words/catalogue.h"

using namespace phalanx;

namespace fs = std::filesystem;

namespace {

// The C++ source that defines words::packed_table(). Error (kInternal): no memory.
base::Result<std::string> table_source(const words::Catalogue& all) {
  const std::string text = words::table_text(all);
  TRY_ASSIGN(const std::string member, base::gzip(text, base::GzipLevel::kSmallest));
  std::string bytes;
  for (size_t i = 0; i < member.size(); ++i)
    bytes += fmt::format("{}{},", i % 32 == 0 ? "\n    " : "", static_cast<unsigned char>(member[i]));
  return fmt::format(
      "// Compiled from words/zh-CN/ by tools/compile_words.\n#include \"words/table.h\"\n\nnamespace phalanx::words {{\n\n"
      "PackedTable packed_table() {{\n  static constexpr unsigned char kMember[] = {{{}}};\n"
      "  return {{{{reinterpret_cast<const char*>(kMember), sizeof(kMember)}}, {}}};\n}}\n\n}}  // namespace phalanx::words\n",
      bytes, text.size());
}

}  // namespace

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
  const base::Result<std::string> source = table_source(all);
  if (!source.ok()) {
    fmt::print(stderr, "{}\n", source.error().message);
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << *source;
  out.close();
  return out && !all.empty() ? 0 : 1;
}
