#include "compile_codes/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace phalanx::codes {

namespace fs = std::filesystem;

base::Error wrong(const fs::path& path, const std::string& what) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}: {}", path.string(), what));
}

base::Result<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return wrong(path, "cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n') out += "\\n\"\n     \"";
    else if (c == '"' || c == '\\') out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\{:03o}", byte);
    else out += c;
  }
  return out + "\"";
}

}  // namespace phalanx::codes
