// English that agrees with its counts. A format is written in the plural, "{} hosts are down"; where the count is shown as "1", the noun
// after it and that noun's verb are put into the singular: "1 host is down". One or two adjectives may stand between. A number that names
// one of many ("rank 1 hosts …") is no count. The nouns and verbs are a list in counted.cc: a noun that is not there stays as written.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace phalanx::base {

// What the words behind a count of one become: " hosts are down" → " host is down". Unchanged if they begin with no noun of the list.
std::string singular(std::string_view words);

std::string format_counted(std::string_view format, fmt::format_args args);

// fmt::format with agreement.
template <typename... Args>
std::string counted(fmt::format_string<Args...> format, Args&&... args) {
  const fmt::string_view text = format;
  return format_counted({text.data(), text.size()}, fmt::make_format_args(args...));
}

// Whether a count and its noun stand in the format: then fmt::format would print "1 hosts".
bool has_counts(std::string_view format);

// The other way, to find the format that a finished line was made of: "1 host is down" → "1 hosts are down".
std::string counts_in_plural(std::string_view line);

}  // namespace phalanx::base
