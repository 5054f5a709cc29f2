#include "base/name_ranges.h"

#include <fmt/format.h>

#include <optional>

#include "base/counted.h"
#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

constexpr size_t kLongestNumber = 15;  // digits; more would not fit every arithmetic below
constexpr size_t kLongestName = 255;   // bytes; the longest host name there is (RFC 1035), and a bound on memory

struct Range {
  int64_t low;
  int64_t high;
  size_t width;  // digits at least
};

// A piece of the word: plain text, or the ranges of one bracket.
struct Piece {
  std::string_view text;
  std::vector<Range> ranges;
};

size_t count(const Piece& piece) {
  size_t total = 0;
  for (const Range& range : piece.ranges) total += static_cast<size_t>(range.high - range.low) + 1;
  return total;
}

class Expander {
 public:
  Expander(std::string_view word, size_t most) : word_(word), most_(most) {}

  // False: fault says why.
  bool parse() {
    while (at_ < word_.size()) {
      if (word_[at_] == ']') return wrong(at_, "']' closes no bracket", "");
      if (word_[at_] == '[') {
        if (!parse_bracket()) return false;
        continue;
      }
      size_t end = word_.find_first_of("[]", at_);
      pieces_.push_back({word_.substr(at_, end - at_), {}});
      at_ = std::min(end, word_.size());
      length_ += pieces_.back().text.size();
    }
    return length_ <= kLongestName || wrong(0, counted("a name is longer than {} bytes", kLongestName), "");
  }

  std::vector<std::string> expand() const {
    std::vector<std::string> names{""};
    for (const Piece& piece : pieces_) {
      std::vector<std::string> longer;
      longer.reserve(names.size() * (piece.ranges.empty() ? 1 : count(piece)));
      for (const std::string& name : names) append(name, piece, longer);
      names = std::move(longer);
    }
    return names;
  }

  RangeFault fault;

 private:
  bool wrong(size_t at, std::string message, std::string hint) {
    fault = {at, std::move(message), std::move(hint)};
    return false;
  }

  static void append(const std::string& name, const Piece& piece, std::vector<std::string>& out) {
    if (piece.ranges.empty()) out.push_back(name + std::string(piece.text));
    for (const Range& range : piece.ranges)
      for (int64_t number = range.low; number <= range.high; ++number) out.push_back(fmt::format("{}{:0{}}", name, number, range.width));
  }

  bool parse_bracket() {
    size_t open = at_++;
    Piece piece;
    for (;;) {
      if (!parse_range(open, piece)) return false;
      size_t names = count(piece);
      if (names > most_ || names * combinations_ > most_) return wrong(open, fmt::format("the ranges make more than {} names", most_), "");
      if (at_ == word_.size()) return wrong(open, "'[' is not closed", "write ranges like gpu[01-04,7]");
      char next = word_[at_++];
      if (next == ']') break;
      if (next != ',') return wrong(at_ - 1, "only numbers, '-' and ',' may stand in a bracket", "write ranges like gpu[01-04,7]");
    }
    combinations_ *= count(piece);
    size_t widest = 0;
    for (const Range& range : piece.ranges) widest = std::max(widest, range.width);
    length_ += widest;
    pieces_.push_back(std::move(piece));
    return true;
  }

  bool parse_range(size_t open, Piece& piece) {
    size_t begin = at_;
    auto low = number(open);
    if (!low) return false;
    std::string_view low_text = word_.substr(begin, at_ - begin);
    Range range{*low, *low, low_text.size()};
    if (at_ < word_.size() && word_[at_] == '-') {
      size_t high_at = ++at_;
      auto high = number(open);
      if (!high) return false;
      std::string_view high_text = word_.substr(high_at, at_ - high_at);
      if (*high < *low)
        return wrong(begin, fmt::format("the range {}-{} runs backwards", low_text, high_text),
                     fmt::format("write {}-{}", high_text, low_text));
      bool padded = (low_text.size() > 1 && low_text[0] == '0') || (high_text.size() > 1 && high_text[0] == '0');
      if (padded && low_text.size() != high_text.size())
        return wrong(begin, fmt::format("the ends of {}-{} differ in width", low_text, high_text),
                     "write as many digits on both sides, like 08-12");
      range.high = *high;
    }
    piece.ranges.push_back(range);
    return true;
  }

  std::optional<int64_t> number(size_t open) {
    size_t begin = at_;
    while (at_ < word_.size() && is_digit(word_[at_])) ++at_;
    if (at_ == begin) {
      if (at_ == word_.size()) wrong(open, "'[' is not closed", "write ranges like gpu[01-04,7]");
      else wrong(at_, "a number is missing in the bracket", "write ranges like gpu[01-04,7]");
      return std::nullopt;
    }
    if (at_ - begin > kLongestNumber) {
      wrong(begin, fmt::format("a number of {} digits is too long", at_ - begin), "");
      return std::nullopt;
    }
    return parse_int(word_.substr(begin, at_ - begin), 0, INT64_MAX).value();
  }

  std::string_view word_;
  size_t most_;
  size_t at_ = 0;
  size_t combinations_ = 1;
  size_t length_ = 0;  // of the longest name, up to carries (9-10 counts as one digit)
  std::vector<Piece> pieces_;
};

// A name around its last number: "gpu01-ib" is gpu, 01, -ib. Null without a number we can count.
struct Numbered {
  std::string_view before;
  std::string_view digits;
  std::string_view after;
  int64_t value;
};

std::optional<Numbered> last_number(std::string_view name) {
  if (name.find_first_of("[],") != std::string_view::npos) return std::nullopt;
  size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  std::string_view digits = name.substr(begin, end - begin);
  if (digits.empty() || digits.size() > kLongestNumber) return std::nullopt;
  return Numbered{name.substr(0, begin), digits, name.substr(end), parse_int(digits, 0, INT64_MAX).value()};
}

// Whether `next` continues a range whose low end is written `low` and whose last member is `last`.
bool continues(const Numbered& low, const Numbered& last, const Numbered& next) {
  bool padded = low.digits.size() > 1 && low.digits[0] == '0';
  return next.value == last.value + 1 && (padded ? next.digits.size() == low.digits.size() : next.digits[0] != '0');
}

std::string fold_group(std::span<const Numbered> group) {
  std::string inside;
  size_t i = 0;
  while (i < group.size()) {
    size_t last = i;
    while (last + 1 < group.size() && continues(group[i], group[last], group[last + 1])) ++last;
    if (!inside.empty()) inside += ',';
    inside += group[i].digits;
    if (last > i) inside += fmt::format("-{}", group[last].digits);
    i = last + 1;
  }
  return fmt::format("{}[{}]{}", group[0].before, inside, group[0].after);
}

}  // namespace

Result<std::vector<std::string>> expand_names(std::string_view word, size_t most, RangeFault* fault) {
  Expander expander(word, most);
  if (expander.parse()) return expander.expand();
  Error error = fail(ErrorKind::kUsage, fmt::format("{}: {}", quote(word), expander.fault.message)).with_hint(expander.fault.hint);
  if (fault) *fault = std::move(expander.fault);
  return error;
}

std::vector<std::string> fold_names(std::span<const std::string> names) {
  std::vector<std::string> words;
  size_t i = 0;
  while (i < names.size()) {
    std::vector<Numbered> group;
    for (size_t j = i; j < names.size(); ++j) {
      auto numbered = last_number(names[j]);
      if (!numbered || (!group.empty() && (numbered->before != group[0].before || numbered->after != group[0].after))) break;
      group.push_back(*numbered);
    }
    words.push_back(group.size() > 1 ? fold_group(group) : names[i]);
    i += std::max<size_t>(group.size(), 1);
  }
  return words;
}

}  // namespace phalanx::base
