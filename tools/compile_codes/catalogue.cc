#include "compile_codes/catalogue.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "compile_codes/packed.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestWords = 12;

constexpr size_t kColumns = 5;  // of the row as the launcher has it

// Without the function, the kinds of slots and the releases, which only people read.
base::Result<std::string> packed_message(const std::string& source, const std::vector<std::string>& cells) {
  std::vector<std::string_view> words = base::split(cells[3], '|');
  if (words.size() > 2 || words[0].size() < kShortestWords)
    return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": one or two fragments, the first of 12 bytes or more", cells[3]));
  std::string then = words.size() > 1 ? std::string(words[1]) : "";
  if (cells[5].empty()) return base::fail(base::ErrorKind::kConfig, fmt::format("\"{}\": the first release is missing", cells[3]));
  return packed_row({source, cells[0], cells[2], std::string(words[0]), then});
}

}  // namespace

base::Result<std::string> compile_catalogue(const fs::path& folder) {
  TRY_ASSIGN(const std::string rows, packed_rows(folder, "file, function, severity, words, slots, first, last", packed_message));
  return packed_source("catalogue", by_columns(rows, kColumns));
}

}  // namespace phalanx::codes
