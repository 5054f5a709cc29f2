// Durations and byte counts of base/text.h: read strictly, written for people.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

struct TimeUnit {
  std::string_view name;
  int64_t milliseconds;
};
// Largest first; "ms" stands before "m" and "s" only by its size, the name is always read whole.
constexpr TimeUnit kTimeUnits[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};
constexpr double kLongestMs = 365.0 * 86'400'000;

// "12" or "1.5" off the front of `text`; negative if there is none. Long digit strings only grow large, never wrong.
double take_number(std::string_view& text) {
  size_t i = 0;
  double value = 0;
  while (i < text.size() && is_digit(text[i])) value = value * 10 + (text[i++] - '0');
  if (i == 0) return -1;
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
    double place = 0.1;
    for (++i; i < text.size() && is_digit(text[i]); ++i, place /= 10) value += place * (text[i] - '0');
  }
  text.remove_prefix(i);
  return value;
}

// At most three significant digits and no trailing zeros: 1.5, 12.3, 123.
std::string three_digits(double value) {
  std::string out = fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (out.find('.') == std::string::npos) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string two_units(int64_t count, int64_t per_large, std::string_view large, std::string_view small) {
  std::string out = fmt::format("{} {}", count / per_large, large);
  if (count % per_large != 0) out += fmt::format(" {} {}", count % per_large, small);
  return out;
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text, ErrorKind kind) {
  auto refuse = [&] {
    return fail(kind, fmt::format("{} is not a duration", quote(text))).with_hint("write a number and a unit: 250ms, 10s, 2m, 1h30m");
  };
  if (text == "0") return std::chrono::milliseconds(0);
  std::string_view rest = text;
  double total = 0;
  size_t next_unit = 0;
  do {
    double number = take_number(rest);
    if (number < 0) return refuse();
    size_t length = 0;
    while (length < rest.size() && rest[length] >= 'a' && rest[length] <= 'z') ++length;
    std::string_view name = rest.substr(0, length);
    if (name.empty() && rest.empty() && next_unit == 0)
      return fail(kind, fmt::format("{} has no unit", quote(text))).with_hint(fmt::format("for seconds write {}s", printable(text)));
    while (next_unit < std::size(kTimeUnits) && kTimeUnits[next_unit].name != name) ++next_unit;
    if (next_unit == std::size(kTimeUnits)) return refuse();
    total += number * static_cast<double>(kTimeUnits[next_unit++].milliseconds);
    rest.remove_prefix(length);
  } while (!rest.empty());
  if (!(total <= kLongestMs)) return fail(kind, fmt::format("{} is longer than 365 days", quote(text)));
  return std::chrono::milliseconds(std::llround(total));
}

std::string format_duration(std::chrono::nanoseconds duration) {
  if (duration.count() < 0) return "-" + format_duration(duration == duration.min() ? duration.max() : -duration);
  double seconds = static_cast<double>(duration.count()) * 1e-9;
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  int64_t whole = std::llround(seconds);
  if (whole < 3600) return two_units(whole, 60, "min", "s");
  int64_t minutes = (whole + 30) / 60;
  if (minutes < 1440) return two_units(minutes, 60, "h", "min");
  return two_units((minutes + 30) / 60, 24, "d", "h");
}

Result<int64_t> parse_bytes(std::string_view text, ErrorKind kind) {
  struct ByteUnit {
    std::string_view name;
    double bytes;
  };
  constexpr ByteUnit kByteUnits[] = {{"", 1},         {"B", 1},      {"K", 0x1p10},   {"KB", 1e3},    {"KiB", 0x1p10},
                                     {"M", 0x1p20},   {"MB", 1e6},   {"MiB", 0x1p20}, {"G", 0x1p30},  {"GB", 1e9},
                                     {"GiB", 0x1p30}, {"T", 0x1p40}, {"TB", 1e12},    {"TiB", 0x1p40}};
  std::string_view rest = text;
  double number = take_number(rest);
  for (const ByteUnit& unit : kByteUnits) {
    if (number < 0 || unit.name != rest) continue;
    double bytes = number * unit.bytes;
    if (!(bytes >= 1 && bytes <= 0x1p60)) break;
    return static_cast<int64_t>(std::llround(bytes));
  }
  return fail(kind, fmt::format("{} is not a number of bytes", quote(text))).with_hint("write a number and a unit: 24GiB, 80GB, 512MiB");
}

std::string format_bytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(value), kUnits[unit]);
}

}  // namespace phalanx::base
