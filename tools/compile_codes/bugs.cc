#include "compile_codes/bugs.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "compile_codes/packed.h"

namespace phalanx::codes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestPart = 4;      // of a trigger: what the scan can look for
constexpr size_t kShortestTrigger = 14;  // all parts: less stands in many logs

bool is_version(std::string_view text) {
  const bool digits = text.find('.') != text.npos && text.find_first_not_of("0123456789.") == text.npos;
  return digits && !text.starts_with('.') && !text.ends_with('.');
}

base::Result<std::string> bug_row(const std::string& component, const std::vector<std::string>& cells) {
  auto fail = [](std::string what) { return base::fail(base::ErrorKind::kConfig, std::move(what)); };
  if ((!cells[0].empty() && !is_version(cells[0])) || !is_version(cells[1])) return fail(fmt::format("{}: not a version", cells[4]));
  bool short_part = false;
  for (std::string_view part : base::split(cells[2], '|')) short_part = short_part || part.size() < kShortestPart;
  if (short_part || cells[2].size() < kShortestTrigger) return fail(fmt::format("{}: the trigger \"{}\" is too short", cells[4], cells[2]));
  if (!cells[5].starts_with("https://")) return fail(fmt::format("{}: the source is no URL", cells[4]));
  return packed_row({component, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]});
}

}  // namespace

base::Result<std::string> compile_bugs(const fs::path& folder) {
  TRY_ASSIGN(const std::string rows, packed_rows(folder, "from, fixed, trigger, workaround, what, source", bug_row));
  return packed_source("bugs", rows);
}

}  // namespace phalanx::codes
