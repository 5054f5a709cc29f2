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

// "rank 3 (process 77 on h2), rank 5 (process 78 on h2) and 9 more".
inline words::Message list_of(std::span<const words::Message> names) {
  constexpr size_t kMostNamed = 6;
  words::Message text;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) text.add(words::tr(", "), names[i]);
  if (names.size() > kMostNamed) text += words::tr(" and {} more##members", names.size() - kMostNamed, words::chinese_only(names.size()));
  return text;
}

// The verb of these ranks.
inline std::string_view of_ranks(std::span<const int> ranks, std::string_view one, std::string_view many) {
  return ranks.size() == 1 ? one : many;
}

}  // namespace phalanx::diagnosis
