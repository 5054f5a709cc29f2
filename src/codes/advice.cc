#include "codes/advice.h"

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const Advice> all_advice() {
  static const std::vector<Advice> rows = [] {
    std::vector<Advice> out;
    for (std::string_view row : base::split_lines(unpack(packed_advice()))) {
      Advice& advice = out.emplace_back();
      advice = advice_on(next_cell(row));
      advice.english = next_cell(row);
      advice.chinese = next_cell(row);
    }
    return out;
  }();
  return rows;
}

}  // namespace phalanx::codes
