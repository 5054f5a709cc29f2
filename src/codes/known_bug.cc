#include "codes/known_bug.h"

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const KnownBug> known_bugs() {
  static const std::vector<KnownBug> rows = [] {
    std::vector<KnownBug> out;
    for (std::string_view row : base::split_lines(unpack(packed_bugs()))) {
      KnownBug& bug = out.emplace_back();
      bug.component = next_cell(row);
      bug.from = next_cell(row);
      bug.fixed = next_cell(row);
      bug.trigger = base::split(next_cell(row), '|');
      bug.workaround = next_cell(row);
      bug.what = next_cell(row);
      bug.source = next_cell(row);
    }
    return out;
  }();
  return rows;
}

}  // namespace phalanx::codes
