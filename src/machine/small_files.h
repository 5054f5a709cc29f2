// Files of /proc and /sys that hold a word or a few: read with a limit, absent is not an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

// Without blanks at the ends; empty if it cannot be read or is longer than 64 KiB.
std::string read_word(const std::string& path);
std::optional<int64_t> read_number(const std::string& path);

// The value behind `name` in "Name:   123 kB" or "name 123" lines; nothing if there is none.
std::optional<int64_t> value_after(std::string_view text, std::string_view name);

// How many CPUs a list "0-7,16-23" names; 0 if it is none.
int64_t count_cpulist(std::string_view list);

// Names in a folder, sorted, without those that begin with a dot; empty if it cannot be read. At most `most`, whichever come first.
std::vector<std::string> names_in(const std::string& folder, size_t most = 65'536);
// Names in a folder that are numbers, ascending: the processes of /proc, the descriptors of /proc/<pid>/fd. At most 65,536.
std::vector<int64_t> numbers_in(const std::string& folder);

}  // namespace phalanx::machine
