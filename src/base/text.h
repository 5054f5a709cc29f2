// Small functions over text. Pure: no locale, no allocation beyond what is returned. Text is bytes; where characters
// matter (columns, escapes) it is UTF-8 and base/unicode.h is the place.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::base {

// ASCII blanks (space, \t, \r, \n, \v, \f) off both ends.
std::string_view trim(std::string_view text);
bool is_blank(char c);

// Every field, also empty ones: split("a,,b", ',') is {a, "", b}; split("", ',') is {""}. Views into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
// Lines without their "\n" or "\r\n". A final line without an end counts; text ending in "\n" has no empty last line.
std::vector<std::string_view> split_lines(std::string_view text);
// Fields between runs of ASCII blanks; never an empty one.
std::vector<std::string_view> split_words(std::string_view text);
// Views into a string that is gone: refused, so that no loop runs over the lines of a temporary.
template <typename S>
  requires std::same_as<S, std::string>
std::vector<std::string_view> split(S&&, char) = delete;
template <typename S>
  requires std::same_as<S, std::string>
std::vector<std::string_view> split_lines(S&&) = delete;
template <typename S>
  requires std::same_as<S, std::string>
std::vector<std::string_view> split_words(S&&) = delete;

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);

// Whether `list` has the word: is_listed("b", "a b c"). No word is empty.
bool is_listed(std::string_view word, std::string_view list, char separator = ' ');

std::string to_lower(std::string_view text);  // ASCII only, as in all that follow
std::string to_upper(std::string_view text);
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_number(std::string_view text);  // digits and nothing else
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// A decimal whole number in [min, max]: digits with an optional leading '-'; no '+', blanks, "0x", or trailing text.
// The error's message is ready to be shown: `"70000" is not a whole number from 1 to 65535`.
Result<int64_t> parse_int(std::string_view text, int64_t min, int64_t max, ErrorKind kind = ErrorKind::kUsage);

// "250ms", "10s", "1.5s", "2m", "1h30m", "7d", "0". A number other than 0 needs its unit; units fall from left to right.
// At most 365 days; rounded to the nearest millisecond.
Result<std::chrono::milliseconds> parse_duration(std::string_view text, ErrorKind kind = ErrorKind::kUsage);
// For people, three significant digits at most: "350 µs", "250 ms", "1.5 s", "2 min 5 s", "1 h 30 min", "3 d 4 h".
std::string format_duration(std::chrono::nanoseconds duration);
// "80GB" (10^9), "24GiB" (2^30), "24G" (2^30, as memory is spoken of), "512MiB", "1.5TiB", "1024" (bytes). 1 to 2^60 bytes.
Result<int64_t> parse_bytes(std::string_view text, ErrorKind kind = ErrorKind::kUsage);
// For people: "512 B", "1.5 KiB", "64 MiB".
std::string format_bytes(uint64_t bytes);

// Whole numbers as ranges with an en dash: {0,1,2,3,9} is "0–3, 9". Sorted and without repeats first.
std::string format_ranges(std::span<const int> numbers);

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);
// The candidate a person probably meant: nearest within a third of the word's length (at least 1), else none.
// Words longer than 64 bytes have none.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

// One word for a POSIX shell, quoted only when it has to be. For showing commands to people, never for running them.
// Control bytes are written as $'…' escapes, so the result is safe to print.
std::string shell_quote(std::string_view word);
std::string shell_quote(std::span<const std::string> words);

}  // namespace phalanx::base
