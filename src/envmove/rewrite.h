// One file of a moved environment: what it is, and its content at the new place. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "envmove/environment.h"
#include "envmove/prefix.h"

namespace phalanx::envmove {

enum class FileClass {
  kText,
  kBinary,      // programs and libraries, and what conda's record calls binary: strings keep their room
  kZipProgram,  // a zip archive of Python behind a first line, as zipapp makes them: that line is text
  kBytecode,    // *.pyc: paths within length-prefixed strings, shown in tracebacks only; Python makes them anew
  kOpaque,      // archives, databases: offsets within would no longer fit
};
// head: the first bytes of the file, up to kClassifiedBytes. managed: may be null.
inline constexpr size_t kClassifiedBytes = 8 << 10;
FileClass classify(std::string_view path, std::string_view head, const Managed* managed);

// direct_url.json names a folder as a URL, where a blank is "%20": /data/my stands not in "file:///data/my%20code". Paths below but_not
// stay. nullopt: no URL of a file is in it, or one that JSON has to spell with backslashes; it is text then.
bool is_url_file(std::string_view path);
std::optional<Replaced> replace_urls(std::string_view json, const Move& move, const std::string& but_not);

// What a file of conda's package is searched for too: its placeholder, which archives of conda-pack still hold for conda-unpack to replace.
Move move_of_file(const Move& move, const Managed* managed);

struct Rewritten {
  std::string data;
  size_t hits = 0;      // 0: nothing to do, data is empty
  std::string problem;  // why it cannot be moved; data is then of no use
};
// path: below the environment's root.
Rewritten rewrite(std::string_view path, std::string_view data, FileClass file_class, const Managed* managed, const Move& move);

}  // namespace phalanx::envmove
