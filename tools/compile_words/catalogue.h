// The catalogue of Chinese texts: words/zh-CN/*.yaml, lists of {en, zh}. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::words {

struct Translation {
  std::string chinese;
  std::string file;
};
using Catalogue = std::map<std::string, Translation, std::less<>>;  // by the English

// Adds a file's entries. Error: not a list of {en, zh}; an English text given before; a Chinese text that does not fit (fits).
base::Status add_file(std::string_view name, std::string_view yaml, Catalogue* all);

// Whether the Chinese names the arguments of the English: with {}, the same ones in the same order; with {0}, any of them, so that the
// "s" of a plural can be left out. What stands behind a colon in the braces is the same. Error: what differs.
base::Status fits(std::string_view english, std::string_view chinese);

// The highest argument a text names, plus one; 0 for a malformed one.
size_t arguments_of(std::string_view text);

// What the table holds: the English of all entries, in order, then the Chinese, each with a zero behind it. Like stands next to like: that
// compresses better.
std::string table_text(const Catalogue& all);

}  // namespace phalanx::words
