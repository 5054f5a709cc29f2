// How English names ranks: "rank 3 waits", "ranks 0–2 wait". Chinese needs neither plural.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/text.h"

namespace phalanx::diagnosis {

inline std::string name_ranks(std::span<const int> ranks) { return (ranks.size() == 1 ? "rank " : "ranks ") + base::format_ranges(ranks); }

inline std::string name_ranks(std::span<const int> ranks, std::string_view one, std::string_view many) {
  return name_ranks(ranks) + " " + std::string(ranks.size() == 1 ? one : many);
}

}  // namespace phalanx::diagnosis
