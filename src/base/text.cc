#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/unicode.h"

namespace phalanx::base {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_lines(std::string_view text) {
  if (text.empty()) return {};
  if (text.back() == '\n') text.remove_suffix(1);
  std::vector<std::string_view> lines = split(text, '\n');
  for (std::string_view& line : lines)
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return lines;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t i = 0;
  while (i < text.size()) {
    size_t begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
    while (i < text.size() && is_blank(text[i])) ++i;
  }
  return words;
}

namespace {
template <typename Part>
std::string join_parts(std::span<const Part> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}
}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) { return join_parts(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) { return join_parts(parts, separator); }

bool is_listed(std::string_view word, std::string_view list, char separator) {
  for (;;) {
    const size_t end = list.find(separator);
    if (list.substr(0, end) == word) return !word.empty();
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

bool is_number(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  PHALANX_CHECK(!from.empty());
  std::string out;
  for (;;) {
    size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

Result<int64_t> parse_int(std::string_view text, int64_t min, int64_t max, ErrorKind kind) {
  auto refuse = [&] { return fail(kind, fmt::format("{} is not a whole number from {} to {}", quote(text), min, max)); };
  bool negative = !text.empty() && text[0] == '-';
  std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty()) return refuse();
  int64_t value = 0;  // counted downwards: the negative range is the larger one
  for (char c : digits) {
    if (c < '0' || c > '9') return refuse();
    if (__builtin_mul_overflow(value, int64_t{10}, &value) || __builtin_sub_overflow(value, int64_t{c - '0'}, &value)) return refuse();
  }
  if (!negative && __builtin_sub_overflow(int64_t{0}, value, &value)) return refuse();
  if (value < min || value > max) return refuse();
  return value;
}

std::string format_ranges(std::span<const int> numbers) {
  std::vector<int> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string out;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last] + 1 == sorted[last + 1]) ++last;
    if (!out.empty()) out += ", ";
    out += last == i ? fmt::format("{}", sorted[i]) : fmt::format("{}–{}", sorted[i], sorted[last]);
    i = last + 1;
  }
  return out;
}

int edit_distance(std::string_view a, std::string_view b) {
  size_t width = b.size() + 1;
  std::vector<int> before(width), previous(width), row(width);
  for (size_t j = 0; j < width; ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < width; ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(row);
  }
  return previous[width - 1];
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kLongestWord = 64;
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  int limit = std::max(1, static_cast<int>(word.size()) / 3);
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    int distance = edit_distance(word, candidate);
    if (distance > limit) continue;
    limit = distance - 1;  // only a nearer one replaces it, so the first of equals wins
    best = &candidate;
  }
  return best ? std::optional(*best) : std::nullopt;
}

std::string shell_quote(std::string_view word) {
  auto plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80 ||
           std::string_view("_@%+=:,./-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  bool control = !is_utf8(word);
  for (unsigned char c : word) control = control || c < 0x20 || c == 0x7f;
  if (!control && !word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  if (!control) return "'" + replace_all(word, "'", "'\\''") + "'";
  std::string out = "$'";
  for (unsigned char c : word) {
    if (c == '\\' || c == '\'') out += {'\\', static_cast<char>(c)};
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c < 0x20 || c >= 0x7f) out += fmt::format("\\{:03o}", c);
    else out += static_cast<char>(c);
  }
  return out + "'";
}

std::string shell_quote(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += shell_quote(word);
  }
  return out;
}

}  // namespace phalanx::base
