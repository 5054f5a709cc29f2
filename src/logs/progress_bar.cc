#include "logs/progress_bar.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "base/unicode.h"
#include "logs/escape.h"

namespace phalanx::logs {
namespace {

using base::is_digit;
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "450", "45.6", and with tqdm's unit_scale "1.36k", "100M". Takes the number off `text`.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  constexpr std::string_view kScales = "kMGTPE";
  size_t scale = text.empty() ? std::string_view::npos : kScales.find(text[0]);
  // The letter is a scale only at the end of a word: "5MB" and "5k", but not "5Gates".
  if (scale != std::string_view::npos && (text.size() == 1 || !is_letter(text[1]))) {
    value *= std::pow(1000.0, static_cast<double>(scale + 1));
    text.remove_prefix(1);
  }
  return value;
}

// "00:12", "1:02:03" (tqdm's format_interval writes days as hours). "?" is nothing. Takes it off `text`.
std::optional<double> take_interval(std::string_view& text) {
  double seconds = 0;
  int fields = 0;
  std::string_view rest = text;
  for (;;) {
    double field = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), field, std::chars_format::fixed);
    if (error != std::errc() || rest.empty() || !is_digit(rest[0])) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    seconds = seconds * 60 + field;
    ++fields;
    if (fields == 4 || rest.empty() || rest[0] != ':') break;
    rest.remove_prefix(1);
  }
  if (fields < 2) return std::nullopt;
  text = rest;
  return seconds;
}

void set_fraction(Bar& bar) {
  if (bar.done && bar.total && *bar.total > 0) bar.fraction = std::clamp(*bar.done / *bar.total, 0.0, 1.0);
}

// "[00:12<00:15, 35.9it/s, loss=2.3]", with the brackets. False when it is not that.
bool read_meter(std::string_view text, Bar& bar) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  bar.elapsed_s = take_interval(text);
  if (!bar.elapsed_s) return false;
  if (!text.empty() && text[0] == '<') {
    text.remove_prefix(1);
    bar.eta_s = take_interval(text);
    text.remove_prefix(std::min(text.size(), text.find(',')));
  }
  if (text.empty()) return true;
  if (text[0] != ',') return false;
  text = base::trim(text.substr(1));
  size_t comma = text.find(", ");
  std::string_view rate = text.substr(0, comma);
  if (!rate.starts_with('?')) bar.rate = rate;
  if (comma != std::string_view::npos) bar.postfix = base::trim(text.substr(comma + 2));
  return true;
}

// The description in front of a number: no bar glyphs (U+2500–U+28FF: boxes, blocks, braille), blanks or punctuation around it.
std::string clean_description(std::string_view text) {
  size_t begin = 0, end = 0;
  bool started = false;
  for (size_t i = 0; i < text.size();) {
    base::Character c = base::first_character(text.substr(i));
    bool glyph = c.code_point >= 0x2500 && c.code_point <= 0x28ff;
    bool noise = glyph || !c.valid || (c.code_point < 0x80 && !is_digit(text[i]) && !is_letter(text[i]) && text[i] != ')');
    if (!noise) {
      if (!started) begin = i;
      started = true;
      end = i + c.length;
    }
    i += c.length;
  }
  return std::string(started ? text.substr(begin, end - begin) : "");
}

// tqdm with a total: "desc:  45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3]".
std::optional<Bar> parse_with_total(std::string_view text) {
  size_t mark = text.find("%|");
  if (mark == std::string_view::npos || mark == 0 || !is_digit(text[mark - 1])) return std::nullopt;
  size_t begin = mark;
  while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  Bar bar;
  std::string_view percent = text.substr(begin, mark - begin);
  std::optional<double> value = take_number(percent);
  if (!value || *value > 100) return std::nullopt;
  bar.fraction = *value / 100;
  bar.desc = clean_description(text.substr(0, begin));
  std::string_view rest = text.substr(mark + 2);
  size_t close = rest.find('|');
  if (close == std::string_view::npos) return bar;
  rest = base::trim(rest.substr(close + 1));
  bar.done = take_number(rest);
  if (bar.done && rest.starts_with('/')) {
    rest.remove_prefix(1);
    bar.total = take_number(rest);
  }
  size_t meter = rest.find('[');
  if (meter != std::string_view::npos) read_meter(base::trim(rest.substr(meter)), bar);
  if (*bar.fraction >= 1.0 && bar.done != bar.total) bar.fraction.reset();  // 99.6 % is written as 100 %
  if (!bar.fraction || *bar.fraction < 1.0) set_fraction(bar);
  return bar;
}

// tqdm without a total: "desc: 450it [00:12, 35.9it/s]".
std::optional<Bar> parse_without_total(std::string_view text) {
  size_t bracket = text.find(" [");
  if (bracket == std::string_view::npos || bracket == 0) return std::nullopt;
  Bar bar;
  if (!read_meter(text.substr(bracket + 1), bar) || bar.eta_s) return std::nullopt;
  size_t begin = bracket;
  while (begin > 0 && !base::is_blank(text[begin - 1])) --begin;
  std::string_view count = text.substr(begin, bracket - begin);
  bar.done = take_number(count);
  if (!bar.done) return std::nullopt;
  bar.desc = clean_description(text.substr(0, begin));
  return bar;
}

bool starts_word(std::string_view text, size_t at) {
  return at == 0 || base::is_blank(text[at - 1]) || std::string_view("([:|=").find(text[at - 1]) != std::string_view::npos;
}

// "450/1000" as a word of its own: not a date, a version or a path.
std::optional<Bar> find_count(std::string_view text, size_t& where) {
  for (size_t slash = text.find('/', 1); slash != std::string_view::npos; slash = text.find('/', slash + 1)) {
    size_t begin = slash;
    while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.' || is_letter(text[begin - 1]))) --begin;
    std::string_view done_text = text.substr(begin, slash - begin);
    std::string_view rest = text.substr(slash + 1);
    Bar bar;
    bar.done = take_number(done_text);
    bar.total = take_number(rest);
    bool word_ends = rest.empty() || base::is_blank(rest[0]) || std::string_view(")],:;|").find(rest[0]) != std::string_view::npos;
    if (!bar.done || !bar.total || !done_text.empty() || !word_ends || !starts_word(text, begin)) continue;
    if (*bar.total <= 0 || *bar.done > *bar.total) continue;
    set_fraction(bar);
    where = begin;
    return bar;
  }
  return std::nullopt;
}

// Anything else that counts: a percentage or "n/m".
std::optional<Bar> parse_counter(std::string_view text) {
  size_t where = std::string_view::npos;
  std::optional<Bar> bar = find_count(text, where);
  for (size_t mark = text.find('%', 1); mark != std::string_view::npos; mark = text.find('%', mark + 1)) {
    size_t begin = mark;
    while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
    std::string_view percent = text.substr(begin, mark - begin);
    std::optional<double> value = take_number(percent);
    if (!value || *value > 100 || !percent.empty() || !starts_word(text, begin)) continue;
    if (!bar) bar.emplace();
    if (!bar->fraction) bar->fraction = *value / 100;
    where = std::min(where, begin);
    break;
  }
  if (bar) bar->desc = clean_description(text.substr(0, where));
  return bar;
}

}  // namespace

bool same_bar(const Bar& a, const Bar& b) {
  auto is_number = [](char c) { return is_digit(c) || c == '.' || c == '-'; };
  size_t i = 0, j = 0;
  for (;;) {
    while (i < a.desc.size() && is_number(a.desc[i])) ++i;
    while (j < b.desc.size() && is_number(b.desc[j])) ++j;
    if (i == a.desc.size() || j == b.desc.size()) return i == a.desc.size() && j == b.desc.size();
    if (a.desc[i++] != b.desc[j++]) return false;
  }
}

std::optional<Bar> parse_bar(std::string_view segment) {
  if (segment.size() > kMaxBarBytes) return std::nullopt;
  std::string plain = strip_escapes(segment);
  std::string_view text = base::trim(plain);
  if (text.empty() || text.find('\n') != std::string_view::npos) return std::nullopt;
  if (auto bar = parse_with_total(text)) return bar;
  if (auto bar = parse_without_total(text)) return bar;
  return parse_counter(text);
}

}  // namespace phalanx::logs
