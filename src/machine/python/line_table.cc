#include "machine/python/line_table.h"

#include <cstddef>

namespace phalanx::machine {
namespace {

constexpr int64_t kMostLine = 100'000'000;
constexpr int64_t kCodeUnit = 2;  // bytes of an instruction
constexpr int8_t kNoLine = -128;  // of kRanges
constexpr unsigned kFirstByte = 0x80;
enum : unsigned { kTwoColumns = 10, kNoColumns = 13, kLong = 14, kNone = 15 };  // of kLocations; 10 to 12 move 0 to 2 lines

std::optional<int> sane(int64_t line) {
  if (line < 1 || line > kMostLine) return std::nullopt;
  return static_cast<int>(line);
}

// Pairs of unsigned distance and signed lines: the line changes at the end of the distance.
std::optional<int> in_lnotab(std::string_view table, int64_t line, int64_t at) {
  int64_t reached = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    reached += static_cast<uint8_t>(table[i]);
    if (reached > at) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return sane(line);
}

// The same pairs, but the lines count from the start of the distance.
std::optional<int> in_ranges(std::string_view table, int64_t line, int64_t at) {
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += static_cast<uint8_t>(table[i]);
    auto moved = static_cast<int8_t>(table[i + 1]);
    if (moved != kNoLine) line += moved;
    if (at < end) return moved == kNoLine ? std::nullopt : sane(line);
  }
  return std::nullopt;
}

// Six bits a byte, the lowest first; 0x40: another follows. The sign is the lowest bit of the number.
int64_t signed_number(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < 6; ++i) {
    auto byte = static_cast<uint8_t>(bytes[i]);
    value |= uint64_t{byte & 63u} << (6 * i);
    if ((byte & 64) == 0) break;
  }
  auto size = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

std::optional<int> in_locations(std::string_view table, int64_t line, int64_t at) {
  int64_t end = 0;
  for (size_t i = 0; i < table.size();) {
    unsigned first = static_cast<uint8_t>(table[i]);
    if ((first & kFirstByte) == 0) return std::nullopt;  // damaged
    unsigned code = (first >> 3) & 15;
    end += (int64_t{first & 7} + 1) * kCodeUnit;
    if (code == kLong || code == kNoColumns) line += signed_number(table.substr(i + 1));
    else if (code >= kTwoColumns && code < kNoColumns) line += code - kTwoColumns;
    if (at < end) return code == kNone ? std::nullopt : sane(line);
    for (++i; i < table.size() && (static_cast<uint8_t>(table[i]) & kFirstByte) == 0;) ++i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> line_at(LineTable kind, std::string_view table, int first_line, int64_t at) {
  if (at < 0) return sane(first_line);
  switch (kind) {
    case LineTable::kLnotab: return in_lnotab(table, first_line, at);
    case LineTable::kRanges: return in_ranges(table, first_line, at);
    case LineTable::kLocations: return in_locations(table, first_line, at);
  }
  return std::nullopt;
}

}  // namespace phalanx::machine
