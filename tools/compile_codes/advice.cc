#include "compile_codes/advice.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "base/try.h"
#include "codes/advice.h"
#include "compile_codes/packed.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestPart = 3;    // of the words: the first; others may be the quote that ends a slot
constexpr size_t kShortestWords = 12;  // all parts: less stands in many messages
constexpr size_t kShortestAtPlace = 8;
constexpr size_t kMostSlots = 10;

base::Result<std::string> advice_row(const std::vector<std::string>& cells) {
  auto fail = [&](std::string_view what) { return base::fail(base::ErrorKind::kConfig, fmt::format("{}: {}", cells[0], what)); };
  const Advice advice = advice_on(cells[0]);
  size_t letters = 0;
  for (std::string_view part : advice.words) {
    if (part.empty() || advice.words[0].size() < kShortestPart) return fail("a part of the words is too short");
    letters += part.size();
  }
  if (advice.words.empty() || letters < (advice.place.empty() ? kShortestWords : kShortestAtPlace)) return fail("the words are too short");
  if (!between_words(cells[1], advice.words)) return fail("the line does not contain the words");
  for (size_t slot = advice.words.size(); slot < kMostSlots; ++slot)
    if ((cells[2] + cells[3]).find(fmt::format("{{{}}}", slot)) != std::string::npos)
      return fail("has a slot of which no words are around");
  if (cells[2].empty() || cells[3].empty()) return fail("the advice is missing in one of the languages");
  return packed_row({cells[0], cells[2], cells[3]});
}

}  // namespace

base::Result<std::string> compile_advice(const fs::path& folder) {
  std::set<std::string> known;
  auto row = [&](const std::string&, const std::vector<std::string>& cells) -> base::Result<std::string> {
    if (!known.insert(cells[0]).second) return base::fail(base::ErrorKind::kConfig, fmt::format("{}: is there twice", cells[0]));
    return advice_row(cells);
  };
  TRY_ASSIGN(const std::string rows, packed_rows(folder, "words, line, en, zh", row));
  return packed_source("advice", rows);
}

}  // namespace phalanx::codes
