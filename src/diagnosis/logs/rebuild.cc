#include "diagnosis/logs/rebuild.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "base/check.h"
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
    ++shape.lines;
    if (line.size() > widest_ && widest_ <= kWidest && line.find('\r') == line.npos) widest_ = std::max(widest_, columns(line));
    if (!full && before.size() + kLongestWord > widest_)
      full = may_be_full(before, line, true) && is_full(columns(before), line, true) && can_follow(before, line);
    if (!shape.json && !line.empty() && line.back() == '}') shape.json = line.substr(0, kWidest).find("{\"") != line.npos;
    before = line;
    return widest_ <= kWidest || !shape.json;
  });
  shape.broken = widest_ >= kNarrowest && widest_ <= kWidest && (full || widest_ != widest);
  return shape;
}

// 20 bytes per line: a block may hold a million of them.
class LineRebuilder::Lines {
 public:
  // Both must outlive it. number: of lines.
  Lines(std::string_view block, Hits hits, size_t number) : block_(block), hits_(hits) {
    PHALANX_CHECK(block.size() < std::numeric_limits<uint32_t>::max());
    lines_.reserve(number + 1);
    size_t hit = 0;
    each_line(block, [&](std::string_view line, size_t end) {
      lines_.push_back({.begin = static_cast<uint32_t>(line.data() - block.data()),
                        .size = static_cast<uint32_t>(line.size()),
                        .first_hit = static_cast<uint32_t>(hit)});
      while (hit < hits.size() && hits[hit].end <= end) ++hit;
      return true;
    });
    lines_.push_back({.begin = 0, .size = 0, .first_hit = static_cast<uint32_t>(hit)});
  }
  size_t size() const { return lines_.size() - 1; }
  std::string_view operator[](size_t line) const { return block_.substr(lines_[line].begin, lines_[line].size); }
  Hits found(size_t line, size_t lines) const {
    return hits_.subspan(lines_[line].first_hit, lines_[line + lines].first_hit - lines_[line].first_hit);
  }
  // In columns; for very wide ones kVeryWide.
  size_t width(size_t line) {
    uint16_t& width = lines_[line].width;
    if (width == kUnknown) width = static_cast<uint16_t>(std::min<size_t>(columns((*this)[line]), kVeryWide));
    return width;
  }
  // Whether the next line can be the rest of this one.
  bool followed(size_t line) {
    Followed& followed = lines_[line].followed;
    if (followed == Followed::kUnknown) followed = can_follow((*this)[line], (*this)[line + 1]) ? Followed::kYes : Followed::kNo;
    return followed == Followed::kYes;
  }
  // How many lines from this one on were tried as parts of one, with nothing between them, and are none; so are fewer.
  uint8_t& tried(size_t line) { return lines_[line].tried; }

 private:
  static constexpr uint16_t kVeryWide = 2 * kWidest, kUnknown = kVeryWide + 1;
  enum class Followed : uint8_t { kUnknown, kNo, kYes };
  struct Line {
    uint32_t begin, size, first_hit;
    uint16_t width = kUnknown;
    Followed followed = Followed::kUnknown;
    uint8_t tried = 1;
  };
  std::string_view block_;
  Hits hits_;
  std::vector<Line> lines_;  // one more at the end, for its first_hit
};

void LineRebuilder::search(std::string_view text, std::vector<LiteralSearch::Hit>& hits) const {
  hits.clear();
  matcher_.search().find(text, hits);
}

size_t LineRebuilder::counted(Hits hits) const {
  auto counts = [&](const LiteralSearch::Hit& hit) { return hit.literal < matcher_.first_bug() && !matcher_.reports_trouble(hit.literal); };
  return static_cast<size_t>(std::count_if(hits.begin(), hits.end(), counts));
}

bool LineRebuilder::of_nccl(Hits hits) const {
  const uint32_t extra = matcher_.first_extra();
  return std::any_of(hits.begin(), hits.end(),
                     [&](const auto& hit) { return hit.literal >= extra + kNccl && hit.literal <= extra + kNcclWarn; });
}

// The signature of a line in which these were found.
const Signature* LineRebuilder::known(std::string_view text, Hits hits, Hits more) {
  std::vector<uint32_t> ids;
  for (Hits found : {hits, more})
    for (const LiteralSearch::Hit& hit : found) ids.push_back(hit.literal);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return matcher_.may_match(ids) ? matcher_.signature_of(read_log_line(text).text, ids) : nullptr;
}

// A line that is as wide as lines get here or, where lines were broken between words, that would have been wider with the next word; by
// its bytes, which are no fewer than its columns.
bool LineRebuilder::may_be_full(std::string_view line, std::string_view next, bool at_words) const {
  if (line.empty() || next.empty()) return false;
  return !at_words ? line.size() >= widest_ : line.size() + 1 + std::min(next.find(' '), next.size()) > widest_;
}

// The same by the line's columns.
bool LineRebuilder::is_full(size_t width, std::string_view next, bool at_words) const {
  if (!at_words) return width == widest_;
  return width <= widest_ && width + 1 + columns(next.substr(0, next.find(' '))) > widest_;
}

bool LineRebuilder::is_full(Lines& lines, size_t line, bool at_words) const {
  return may_be_full(lines[line], lines[line + 1], at_words) && is_full(lines.width(line), lines[line + 1], at_words);
}

LineRebuilder::Joint LineRebuilder::join(const Lines& lines, size_t first, size_t parts, bool blanks) const {
  Joint joint;
  for (size_t i = first; i < first + parts; ++i) {
    const size_t end = joint.text.size();
    if (blanks && end > 0 && !lines[i].starts_with(' ')) joint.text += ' ';
    if (i > first) joint.seams.push_back({end, joint.text.size()});
    joint.text += lines[i];
  }
  matcher_.search().find_across(joint.text, joint.seams, joint.across);
  return joint;
}

// The parts as one line: without anything between them, or with blanks; nothing if that is no line that anything knows, or if the parts
// are lines of their own.
std::optional<std::string> LineRebuilder::joined(const Lines& lines, size_t first, size_t parts, bool at_words) {
  Joint tight = join(lines, first, parts, false), blanks = join(lines, first, parts, true);
  const Hits inside = lines.found(first, parts);
  const size_t in_tight = counted(tight.across), in_blanks = counted(blanks.across);
  if (counted(inside) + in_tight + in_blanks == 0) return std::nullopt;
  const Signature* part_known = nullptr;
  bool first_known = false;  // then the whole must say something else; a later part is no line of its own
  for (size_t i = first; i < first + parts; ++i) {
    const Signature* found = known(lines[i], lines.found(i, 1));
    if (found && part_known) return std::nullopt;
    if (!found) continue;
    part_known = found;
    first_known = i == first;
  }
  auto better = [&](const Joint& whole) {
    const Signature* found = known(whole.text, inside, whole.across);
    return found && (found != part_known || !first_known);
  };
  if (in_blanks > in_tight && better(blanks)) return std::move(blanks.text);
  if (better(tight)) return std::move(tight.text);
  if (better(blanks)) return std::move(blanks.text);
  // Of NCCL's lines none is known by itself, but what they tell is read.
  const char second = lines[first + 1][0];
  if (at_words || part_known || (second >= 'A' && second <= 'Z') || !(of_nccl(inside) || of_nccl(tight.across))) return std::nullopt;
  std::string_view begin = std::string_view(tight.text).substr(0, kWidest);
  bool nccl = begin.find(" NCCL INFO ") != begin.npos || begin.find(" NCCL WARN ") != begin.npos;
  return nccl ? std::optional(std::move(tight.text)) : std::nullopt;
}

// From line `first` on: what is put together to one line; 0 parts: nothing.
LineRebuilder::Whole LineRebuilder::whole_at(Lines& lines, size_t first, bool at_words) {
  auto goes_on = [&](size_t parts) {
    if (first + parts >= lines.size() || parts >= kMostParts || !is_full(lines, first + parts - 1, at_words)) return false;
    return parts == 1 ? lines.followed(first) : can_follow(lines[first], lines[first + parts]);
  };
  size_t most = 1;
  while (goes_on(most)) ++most;
  // Each of several may end it: a line may be as wide as the widest by chance. What is no line with nothing between the parts is none at
  // words either.
  for (size_t parts = most; parts > (at_words ? lines.tried(first) : 1); --parts)
    if (auto text = joined(lines, first, parts, at_words)) return {parts, std::move(*text)};
  if (!at_words) lines.tried(first) = static_cast<uint8_t>(most);
  return {};
}

std::optional<std::string> LineRebuilder::without_breaks(std::string_view block, Hits hits, size_t number) {
  Lines lines(block, hits, number);
  size_t exact = 0, loose = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    if (is_full(lines, i, true)) ++(is_full(lines, i, false) ? exact : loose);
  std::map<size_t, Whole> wholes;
  for (bool at_words : {loose > exact, loose <= exact}) {
    if (!wholes.empty() || exact + loose == 0) break;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (!is_full(lines, i, at_words)) continue;
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
bool LineRebuilder::worth_converting(std::string_view line, Hits hits) const {
  if (line.find("\\\"") != line.npos) return true;
  bool known = std::any_of(hits.begin(), hits.end(), [&](const LiteralSearch::Hit& hit) { return hit.literal < matcher_.first_extra(); });
  return known || (!hits.empty() && line.find("NCCL ") != line.npos);
}

std::optional<std::string> LineRebuilder::without_json(std::string_view block, Hits hits) {
  std::string out;
  size_t copied = 0, begin = 0, hit = 0;
  each_line(block, [&](std::string_view line, size_t end) {
    const size_t first_hit = hit;
    while (hit < hits.size() && hits[hit].end <= end) ++hit;
    if (line.ends_with('}')) {
      if (line.find(kTracebackHead) != line.npos) convert_ = kTracebackLines;
      bool convert = convert_ > 0 || worth_converting(line, hits.subspan(first_hit, hit - first_hit));
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
  if (copied == 0) return std::nullopt;
  out += block.substr(copied);
  return out;
}

std::optional<std::string> LineRebuilder::rebuild(std::string_view block, std::vector<LiteralSearch::Hit>& hits) {
  search(block, hits);
  const Shape shape = measure(block);
  std::optional<std::string> out = shape.json ? without_json(block, hits) : std::nullopt;
  if (out) search(*out, hits);
  std::optional<std::string> whole = shape.broken ? without_breaks(out ? *out : block, hits, shape.lines) : std::nullopt;
  if (!whole) return out;
  search(*whole, hits);
  return whole;
}

}  // namespace phalanx::diagnosis
