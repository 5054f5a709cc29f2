// How ranks are named: "rank 3 waits", "ranks 0–2 wait". Chinese needs neither plural.
#pragma once

#include <span>
#include <string_view>

#include "base/text.h"
#include "words/message.h"

namespace phalanx::diagnosis {

inline words::Message name_ranks(std::span<const int> ranks) {
  return words::tr("rank{} {}", ranks.size() == 1 ? "" : "s", base::format_ranges(ranks));
}

// The verb of these ranks.
inline std::string_view of_ranks(std::span<const int> ranks, std::string_view one, std::string_view many) {
  return ranks.size() == 1 ? one : many;
}

}  // namespace phalanx::diagnosis
