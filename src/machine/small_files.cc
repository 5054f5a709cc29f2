#include "machine/small_files.h"

#include <dirent.h>

#include <algorithm>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::machine {

std::string read_word(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 64 << 10);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

std::optional<int64_t> read_number(const std::string& path) {
  base::Result<int64_t> value = base::parse_int(read_word(path), INT64_MIN, INT64_MAX);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

std::optional<int64_t> value_after(std::string_view text, std::string_view name) {
  for (std::string_view line : base::split_lines(text)) {
    std::vector<std::string_view> f = base::split_words(line);
    if (f.size() < 2) continue;
    std::string_view key = f[0].back() == ':' ? f[0].substr(0, f[0].size() - 1) : f[0];
    if (key != name) continue;
    base::Result<int64_t> value = base::parse_int(f[1], INT64_MIN, INT64_MAX);
    return value.ok() ? std::optional(*value) : std::nullopt;
  }
  return std::nullopt;
}

int64_t count_cpulist(std::string_view list) {
  constexpr int64_t kMostCpus = 65'536;
  int64_t count = 0;
  for (std::string_view part : base::split(base::trim(list), ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> low = base::parse_int(part.substr(0, dash), 0, kMostCpus);
    base::Result<int64_t> high = dash == std::string_view::npos ? low : base::parse_int(part.substr(dash + 1), 0, kMostCpus);
    if (!low.ok() || !high.ok() || *high < *low) return 0;
    count += *high - *low + 1;
  }
  return count;
}

std::vector<std::string> names_in(const std::string& folder, size_t most) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return names;
  while (dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.' && names.size() < most) names.emplace_back(entry->d_name);
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int64_t> numbers_in(const std::string& folder) {
  std::vector<int64_t> numbers;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return numbers;
  while (dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || numbers.size() >= 65'536) continue;
    base::Result<int64_t> number = base::parse_int(entry->d_name, 0, INT64_MAX);
    if (number.ok()) numbers.push_back(*number);
  }
  ::closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace phalanx::machine
