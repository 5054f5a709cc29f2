#include "view/terminal/line_prefix.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/unicode.h"
#include "logs/escape.h"

namespace phalanx::view {
namespace {

constexpr char kEscape = '\x1b';
constexpr const char* kReset = "\x1b[0m";
// Hosts in turn: cyan, green, yellow, magenta, blue, and the bright ones; red is for what is wrong.
constexpr const char* kHostColours[] = {"\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[92m", "\x1b[95m"};
constexpr const char* kStderrColour = "\x1b[31m";

bool is_c1(std::string_view text, bool utf8) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (!utf8) return byte(0) >= 0x80 && byte(0) < 0xa0;
  return byte(0) == 0xc2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xa0;
}

bool is_dropped(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == '\x7f'; }

bool needs_care(std::string_view lines, const Controls& controls) {
  if (std::memchr(lines.data(), kEscape, lines.size())) return true;
  if (!controls.terminal) return false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (is_dropped(lines[i]) || is_c1(lines.substr(i, 2), controls.utf8)) return true;
  return false;
}

void append_plain(std::string& out, std::string_view prefix, std::string_view lines) {
  size_t count = static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
  size_t begin = out.size();
  out.resize(begin + lines.size() + count * prefix.size());
  char* to = out.data() + begin;
  const char* from = lines.data();
  const char* end = from + lines.size();
  while (from < end) {
    size_t length = static_cast<size_t>(static_cast<const char*>(std::memchr(from, '\n', static_cast<size_t>(end - from))) - from) + 1;
    std::memcpy(to, prefix.data(), prefix.size());
    to += prefix.size();
    std::memcpy(to, from, length);
    to += length;
    from += length;
  }
}

void append_careful(std::string& out, std::string_view line, const Controls& controls) {
  bool coloured = false;
  for (size_t i = 0; i < line.size();) {
    std::string_view rest = line.substr(i);
    if (rest[0] == kEscape) {
      size_t length = logs::escape_length(rest);
      if (controls.colours && logs::is_colour(rest.substr(0, length))) {
        out += rest.substr(0, length);
        coloured = true;
      }
      i += length;
    } else if (controls.terminal && is_dropped(rest[0])) {
      ++i;
    } else if (controls.terminal && is_c1(rest, controls.utf8)) {
      i += controls.utf8 ? 2 : 1;
    } else {
      out += rest[0];
      ++i;
    }
  }
  if (coloured) out += "\x1b[0m";
}

}  // namespace

std::string rank_prefix(std::string_view host, int rank, size_t host_number, bool colour, bool mark) {
  std::string name = fmt::format("[{}:{}", base::printable(host), rank);
  if (!colour) return name + (mark ? "!] " : "] ");
  std::string paint = kHostColours[host_number % std::size(kHostColours)];
  return paint + name + (mark ? kReset + std::string(kStderrColour) + "!" + kReset + paint : "") + "]" + kReset + " ";
}

void append_prefixed(std::string& out, std::string_view prefix, std::string_view lines, const Controls& controls) {
  if (lines.empty()) return;
  bool ended = lines.back() == '\n';
  if (ended && !needs_care(lines, controls)) return append_plain(out, prefix, lines);
  while (!lines.empty()) {
    size_t end = std::min(lines.find('\n'), lines.size());
    out += prefix;
    append_careful(out, lines.substr(0, end), controls);
    out += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace phalanx::view
