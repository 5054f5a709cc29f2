#include "diagnosis/logs/rebuild.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/unicode.h"
#include "diagnosis/logs/line.h"
#include "diagnosis/logs/traceback.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kNarrowest = 60, kWidest = 250;  // columns of terminals and mail that break lines
constexpr size_t kMostParts = 16;
constexpr size_t kLongestWord = 120;  // that moves to the next line
constexpr size_t kAlike = 6;          // bytes by which the beginnings of two lines are compared
constexpr int kTracebackLines = 300;  // JSON lines converted after the head of one

bool digit(char c) { return c >= '0' && c <= '9'; }

// Calls see(line, end): end is behind its "\n".
template <typename See>
void each_line(std::string_view block, See see) {
  for (size_t at = 0; at < block.size();) {
    size_t end = std::min(block.find('\n', at), block.size());
    std::string_view line = block.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = std::min(end + 1, block.size());
    if (!see(line, at)) return;
  }
}

// Code points: what a terminal counts, but for wide characters. Eight bytes at a time: a fifth of the time of a long log went here.
size_t columns(std::string_view line) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  size_t inside = 0, at = 0;  // bytes 10xxxxxx, which begin none
  for (; at + sizeof(uint64_t) <= line.size(); at += sizeof(uint64_t)) {
    uint64_t eight;
    std::memcpy(&eight, line.data() + at, sizeof(eight));
    inside += (((eight >> 7) & ~(eight >> 6) & kOnes) * kOnes) >> 56;
  }
  for (; at < line.size(); ++at) inside += (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80;
  return line.size() - inside;
}

// Whether two lines begin in the same way, digits aside: then each is a line of its own.
bool begin_alike(std::string_view a, std::string_view b) {
  if (a.size() < kAlike || b.size() < kAlike) return false;
  for (size_t i = 0; i < kAlike; ++i)
    if (a[i] != b[i] && !(digit(a[i]) && digit(b[i]))) return false;
  return true;
}

bool has_tags(std::string_view line) {
  LogLine read = read_log_line(line);
  return read.text.data() != line.data() || !read.host.empty() || read.time;
}

// Whether `next` can be the rest of a line that began with `line`.
bool can_follow(std::string_view line, std::string_view next) {
  if (next.empty() || next.starts_with("  ") || next.starts_with('\t') || begin_alike(line, next)) return false;
  if (next.find(kTracebackHead) != next.npos || next.starts_with("{\"")) return false;
  // The last source line of a traceback is often its widest.
  if (line.starts_with("    ") && is_exception_line(next)) return false;
  return digit(next[0]) || !has_tags(next) || !has_tags(line);
}

}  // namespace

LineRebuilder::Shape LineRebuilder::measure(std::string_view block) {
  Shape shape;
  size_t widest = widest_;
  bool full = false;  // by the width of the blocks before
  std::string_view before;
  each_line(block, [&](std::string_view line, size_t) {
    if (line.size() > widest_ && widest_ <= kWidest && line.find('\r') == line.npos) widest_ = std::max(widest_, columns(line));
    if (!full && before.size() + kLongestWord > widest_) full = is_full(before, line, true) && can_follow(before, line);
    if (!shape.json && !line.empty() && line.back() == '}') shape.json = line.substr(0, kWidest).find("{\"") != line.npos;
    before = line;
    return widest_ <= kWidest || !shape.json;
  });
  shape.broken = widest_ >= kNarrowest && widest_ <= kWidest && (full || widest_ != widest);
  return shape;
}

size_t LineRebuilder::literals_in(std::string_view text) const {
  std::vector<LiteralSearch::Hit> hits;
  matcher_.search().find(text, hits);
  auto counts = [&](const LiteralSearch::Hit& hit) { return hit.literal < matcher_.first_bug() && !matcher_.reports_trouble(hit.literal); };
  return static_cast<size_t>(std::count_if(hits.begin(), hits.end(), counts));
}

const Signature* LineRebuilder::known(std::string_view text) {
  std::vector<LiteralSearch::Hit> hits;
  matcher_.search().find(text, hits);
  if (hits.empty()) return nullptr;
  std::vector<uint32_t> ids;
  for (const LiteralSearch::Hit& hit : hits) ids.push_back(hit.literal);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return matcher_.match(read_log_line(text).text, ids).signature;
}

// A line that is as wide as lines get here or, where lines were broken between words, that would have been wider with the next word.
bool LineRebuilder::is_full(std::string_view line, std::string_view next, bool at_words) const {
  if (line.empty() || next.empty()) return false;
  if (!at_words) return line.size() >= widest_ && columns(line) == widest_;
  size_t word = std::min(next.find(' '), next.size());
  if (line.size() + 1 + word <= widest_) return false;
  size_t width = columns(line);
  return width <= widest_ && width + 1 + columns(next.substr(0, word)) > widest_;
}

// The parts as one line: without anything between them, or with blanks; nothing if that is no line that anything knows, or if the parts
// are lines of their own.
std::optional<std::string> LineRebuilder::joined(const std::vector<std::string_view>& parts, bool at_words) {
  std::string tight, blanks;
  for (std::string_view part : parts) {
    tight += part;
    blanks += (blanks.empty() || part.starts_with(' ') ? "" : " ") + std::string(part);
  }
  size_t in_tight = literals_in(tight), in_blanks = literals_in(blanks);
  if (in_tight + in_blanks == 0) return std::nullopt;
  const Signature* part_known = nullptr;
  bool first_known = false;  // then the whole must say something else; a later part is no line of its own
  for (std::string_view part : parts) {
    const Signature* found = known(part);
    if (found && part_known) return std::nullopt;
    if (!found) continue;
    part_known = found;
    first_known = part.data() == parts[0].data();
  }
  auto better = [&](const std::string& whole) {
    const Signature* found = known(whole);
    return found && (found != part_known || !first_known);
  };
  if (in_blanks > in_tight && better(blanks)) return blanks;
  if (better(tight)) return tight;
  if (better(blanks)) return blanks;
  bool sentence = parts[1][0] >= 'A' && parts[1][0] <= 'Z';
  bool nccl = tight.substr(0, kWidest).find(" NCCL INFO ") != tight.npos || tight.substr(0, kWidest).find(" NCCL WARN ") != tight.npos;
  return nccl && !at_words && !sentence && !part_known ? std::optional(tight) : std::nullopt;
}

// From line `first` on: what is put together to one line; 0 parts: nothing.
LineRebuilder::Whole LineRebuilder::whole_at(const std::vector<std::string_view>& lines, size_t first, bool at_words) {
  std::vector<std::string_view> parts = {lines[first]};
  while (first + parts.size() < lines.size() && parts.size() < kMostParts) {
    std::string_view next = lines[first + parts.size()];
    if (!is_full(parts.back(), next, at_words) || !can_follow(parts[0], next)) break;
    parts.push_back(next);
  }
  // Each of several may end it: a line may be as wide as the widest by chance.
  for (; parts.size() > 1; parts.pop_back())
    if (auto text = joined(parts, at_words)) return {parts.size(), std::move(*text)};
  return {};
}

std::optional<std::string> LineRebuilder::without_breaks(std::string_view block) {
  std::vector<std::string_view> lines;
  each_line(block, [&](std::string_view line, size_t) {
    lines.push_back(line);
    return true;
  });
  size_t exact = 0, loose = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    if (is_full(lines[i], lines[i + 1], true)) ++(is_full(lines[i], lines[i + 1], false) ? exact : loose);
  std::map<size_t, Whole> wholes;
  for (bool at_words : {loose > exact, loose <= exact}) {
    if (!wholes.empty() || exact + loose == 0) break;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (!is_full(lines[i], lines[i + 1], at_words)) continue;
      Whole whole = whole_at(lines, i, at_words);
      size_t parts = whole.parts;
      if (parts > 0) wholes.emplace(i, std::move(whole));
      i += parts > 0 ? parts - 1 : 0;
    }
  }
  if (wholes.empty()) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < lines.size();) {
    auto found = wholes.find(i);
    size_t parts = found == wholes.end() ? 1 : found->second.parts;
    out += found == wholes.end() ? lines[i] : std::string_view(found->second.text);
    out.append(parts, '\n');
    i += parts;
  }
  if (!block.ends_with('\n')) out.pop_back();
  return out;
}

// Whether a JSON line can say something of interest: not its ranks' tags, which are read where they stand.
bool LineRebuilder::worth_converting(std::string_view line, std::vector<LiteralSearch::Hit>& hits) const {
  if (line.find("\\\"") != line.npos) return true;
  hits.clear();
  matcher_.search().find(line, hits);
  bool known = std::any_of(hits.begin(), hits.end(), [&](const LiteralSearch::Hit& hit) { return hit.literal < matcher_.first_extra(); });
  return known || (!hits.empty() && line.find("NCCL ") != line.npos);
}

std::string LineRebuilder::without_json(std::string_view block) {
  std::vector<LiteralSearch::Hit> hits;
  std::string out;
  size_t copied = 0, begin = 0;
  each_line(block, [&](std::string_view line, size_t end) {
    if (line.ends_with('}')) {
      if (line.find(kTracebackHead) != line.npos) convert_ = kTracebackLines;
      bool convert = convert_ > 0 || worth_converting(line, hits);
      convert_ = std::max(0, convert_ - 1);
      if (auto message = convert ? message_of_json(line) : std::nullopt) {
        out += block.substr(copied, begin - copied);
        out += *message;
        copied = begin + line.size();
      }
    }
    begin = end;
    return true;
  });
  out += block.substr(copied);
  return out;
}

std::optional<std::string> LineRebuilder::rebuild(std::string_view block) {
  Shape shape = measure(block);
  if (!shape.json) return shape.broken ? without_breaks(block) : std::nullopt;
  std::string messages = without_json(block);
  if (!shape.broken) return messages;
  std::optional<std::string> whole = without_breaks(messages);
  return whole ? std::move(whole) : std::optional(std::move(messages));
}

}  // namespace phalanx::diagnosis
