#include "diagnosis/logs/segments.h"

#include <algorithm>

#include "base/text.h"
#include "diagnosis/logs/line.h"
#include "logs/escape.h"

namespace phalanx::diagnosis {
namespace {

bool ends_segment(char c) { return c == '\n' || c == '\r'; }

// "… failed, retrying 1/3"; after the last of them nothing is tried again.
bool tries_again(std::string_view line) {
  constexpr std::string_view kRetrying = "retrying ";
  const size_t at = line.rfind(kRetrying), slash = line.rfind('/');
  if (at == line.npos || slash == line.npos || slash < at) return false;
  const size_t number = at + kRetrying.size();
  const auto now = base::parse_int(line.substr(number, slash - number), 1, 1'000'000);
  const auto most = base::parse_int(line.substr(slash + 1), 1, 1'000'000);
  return now.ok() && most.ok() && *now < *most;
}

}  // namespace

size_t segment_end(std::string_view text, size_t from) {
  size_t end = std::min(text.find('\n', from), text.size());
  return std::min(text.substr(0, end).find('\r', from), end);
}

size_t segment_begin(std::string_view text, size_t at) {
  while (at > 0 && !ends_segment(text[at - 1])) --at;
  return at;
}

bool ignored_before(std::string_view text, size_t begin) {
  for (int blank = 0; blank <= 1 && begin >= 2; ++blank) {
    size_t end = begin - 1, from = segment_begin(text, end);
    std::string_view before = base::trim(text.substr(from, end - from));
    begin = from;
    if (before.empty()) continue;
    return tries_again(before) || before.find("Exception ignored in") != before.npos;
  }
  return false;
}

std::optional<int64_t> time_before(std::string_view text, size_t begin) {
  constexpr int kLinesBack = 12;
  constexpr size_t kHead = 200;
  for (int i = 0; i < kLinesBack && begin > 0; ++i) {
    const size_t end = begin - 1;
    begin = segment_begin(text, end);
    if (auto found = find_time(text.substr(begin, std::min(end - begin, kHead)))) return found;
  }
  return std::nullopt;
}

std::string without_escapes(std::string_view block) {
  std::string out;
  out.reserve(block.size());
  while (!block.empty()) {
    size_t escape = std::min(block.find('\x1b'), block.size());
    out += block.substr(0, escape);
    block.remove_prefix(escape);
    if (block.empty()) break;
    block.remove_prefix(std::max<size_t>(1, logs::escape_length(block.substr(0, segment_end(block, 0)))));
  }
  return out;
}

}  // namespace phalanx::diagnosis
