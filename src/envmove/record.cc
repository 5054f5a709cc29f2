// RECORD of a dist-info folder: lines of CSV (PyPA, "Recording installed projects").
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "envmove/packages.h"

namespace phalanx::envmove {
namespace {

// The next field of a line of CSV; false: a quote is not closed, or something follows it.
bool next_field(std::string_view& line, std::string& field) {
  field.clear();
  if (!line.starts_with('"')) {
    const size_t comma = std::min(line.find(','), line.size());
    field = line.substr(0, comma);
    line.remove_prefix(std::min(comma + 1, line.size()));
    return true;
  }
  line.remove_prefix(1);
  for (;;) {
    const size_t quote = line.find('"');
    if (quote == std::string_view::npos) return false;
    field += line.substr(0, quote);
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) break;
    field += '"';
    line.remove_prefix(1);
  }
  if (!line.empty() && line[0] != ',') return false;
  line.remove_prefix(line.empty() ? 0 : 1);
  return true;
}

}  // namespace

std::optional<RecordLine> parse_record_line(std::string_view line) {
  RecordLine out;
  if (!next_field(line, out.path) || out.path.empty() || !next_field(line, out.hash) || !next_field(line, out.size) || !line.empty())
    return std::nullopt;
  if ((out.hash + out.size).find_first_of(",\"") != std::string::npos) return std::nullopt;  // neither is a hash or a number
  return out;
}

std::string record_line(const RecordLine& line) {
  const bool quote = line.path.find_first_of(",\"\r\n") != std::string::npos;
  return fmt::format("{},{},{}", quote ? "\"" + base::replace_all(line.path, "\"", "\"\"") + "\"" : line.path, line.hash, line.size);
}

std::string record_hash(std::string_view sha256_hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  auto digit = [](char c) { return static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string out = "sha256=";
  uint32_t bits = 0;
  int held = 0;
  for (char c : sha256_hex) {
    bits = bits << 4 | digit(c);
    held += 4;
    if (held < 6) continue;
    held -= 6;
    out += kDigits[bits >> held & 63];
  }
  if (held > 0) out += kDigits[bits << (6 - held) & 63];
  return out;
}

}  // namespace phalanx::envmove
