#include "words/said.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "base/text.h"
#include "words/table.h"

namespace phalanx::words {
namespace {

constexpr int kDeepest = 3;              // values within values
constexpr size_t kFewestLetters = 4;     // of a text's fixed parts: "{}: {}" says nothing
constexpr size_t kFewestAfterValue = 7;  // of one that begins with a value: "{} in use" is the end of many sentences
constexpr size_t kLongestLine = 2'000;   // what is longer is no text of ours

struct Piece {
  std::string fixed;  // before the placeholder
  int place = -1;     // -1: the end
};

// "rank {1} of {0}" → {"rank ", 1}, {" of ", 0}, {"", -1}. "{{" is a brace.
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> out(1);
  int next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && doubled) out.back().fixed += text[i++];
    else if (text[i] != '{') out.back().fixed += text[i];
    else {
      const size_t end = std::min(text.find('}', i), text.size());
      int place = 0;
      size_t digit = i + 1;
      for (; digit < end && text[digit] >= '0' && text[digit] <= '9'; ++digit) place = place * 10 + (text[digit] - '0');
      out.back().place = digit > i + 1 ? place : next++;
      out.emplace_back();
      i = end;
    }
  }
  return out;
}

size_t letters(const std::vector<Piece>& pieces) {
  size_t count = 0;
  for (const Piece& piece : pieces)
    count += static_cast<size_t>(
        std::count_if(piece.fixed.begin(), piece.fixed.end(), [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }));
  return count;
}

// The values between the fixed parts; none: the line is not made of this text. Each value is as short as the next fixed part allows.
std::optional<std::vector<std::string>> values_in(std::string_view line, const std::vector<Piece>& pieces) {
  std::vector<std::string> values;
  if (!line.starts_with(pieces[0].fixed)) return std::nullopt;
  size_t at = pieces[0].fixed.size();
  for (size_t i = 1; i < pieces.size(); ++i) {
    const std::string& fixed = pieces[i].fixed;
    const bool last = i + 1 == pieces.size();
    size_t end = last ? (line.size() >= at + fixed.size() && line.ends_with(fixed) ? line.size() - fixed.size() : std::string_view::npos)
                      : line.find(fixed, at);
    if (end == std::string_view::npos) return std::nullopt;
    const auto place = static_cast<size_t>(pieces[i - 1].place);
    if (place > 63) return std::nullopt;
    values.resize(std::max(values.size(), place + 1));
    values[place] = std::string(line.substr(at, end - at));
    at = end + fixed.size();
  }
  return at == line.size() ? std::optional(values) : std::nullopt;
}

bool has_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xE3; });
}

// "phalanx.yaml:1:8: hosts, character 3": where something stands, before what is wrong with it. Such a value stays in front.
bool has_more_texts(std::string_view value) {
  bool quoted = false;
  for (size_t i = 0; i + 1 < value.size(); ++i) {
    if (value[i] == '"') quoted = !quoted;
    if (!quoted && value[i] == ':' && value[i + 1] == ' ') return true;
  }
  return false;
}

// A text that begins or ends with a value also fits a line that has more texts there; the Chinese would then wrap its words around them.
bool takes_too_much(const std::vector<Piece>& pieces, const std::vector<std::string>& values, std::string_view chinese) {
  if (pieces.size() < 2) return false;
  const std::string& first = values[static_cast<size_t>(pieces[0].place)];
  const std::string& last = values[static_cast<size_t>(pieces[pieces.size() - 2].place)];
  // "{} {} is not supported": the second is what the first has left of them.
  for (size_t i = 1; pieces[0].fixed.empty() && i + 1 < pieces.size() && pieces[i].fixed == " "; ++i)
    if (has_more_texts(values[static_cast<size_t>(pieces[i].place)])) return true;
  return (pieces[0].fixed.empty() && !chinese.starts_with('{') && has_more_texts(first)) ||
         (pieces.back().fixed.empty() && !chinese.ends_with('}') && has_more_texts(last));
}

std::optional<std::string> looked_up(std::string_view line, int depth);

// The text that the whole line is made of, the one with the most letters.
std::optional<std::string> matched(std::string_view line, int depth) {
  if (depth > kDeepest || line.size() < kFewestLetters || line.size() > kLongestLine || has_chinese(line)) return std::nullopt;
  const Table& all = table();
  size_t best = kFewestLetters - 1;
  std::vector<std::string> values;
  std::string_view chinese;
  for (size_t i = 0; i < all.english.size(); ++i) {
    const std::string_view english = all.english[i];
    // Most texts begin with a fixed part: it is compared before anything is taken apart.
    const size_t fixed = english.find('{');
    if (english.find("##") != std::string_view::npos || !line.starts_with(english.substr(0, std::min(fixed, english.size())))) continue;
    if (fixed == std::string_view::npos && english != line) continue;
    const std::vector<Piece> pieces = pieces_of(english);
    const size_t count = letters(pieces);
    if (count <= best || (fixed == 0 && count < kFewestAfterValue)) continue;
    auto found = values_in(line, pieces);
    if (!found || takes_too_much(pieces, *found, all.chinese[i])) continue;
    best = count;
    values = *std::move(found);
    chinese = all.chinese[i];
  }
  if (chinese.empty()) return std::nullopt;
  std::string out;
  for (const Piece& piece : pieces_of(chinese)) {
    out += piece.fixed;
    if (piece.place < 0 || static_cast<size_t>(piece.place) >= values.size()) continue;
    const std::string& value = values[static_cast<size_t>(piece.place)];
    out += looked_up(value, depth + 1).value_or(value);
  }
  return out;
}

// "data 1 %, forward 20 %": a list whose items are all known.
std::optional<std::string> listed(std::string_view line, int depth) {
  const Text comma{", ##label"};
  if (line.find(comma.english) == std::string_view::npos) return std::nullopt;
  std::string list;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(comma.english, at), line.size());
    auto item = matched(line.substr(at, end - at), depth + 1);
    if (!item) return std::nullopt;
    list += std::string(at == 0 ? "" : comma.in(Language::kChinese)) + *item;
    at = end + (end == line.size() ? 1 : comma.english.size());
  }
  return list;
}

// "h9: the host name cannot be resolved: ssh: …": who, what, and the words of others.
std::optional<std::string> looked_up(std::string_view line, int depth) {
  if (auto list = listed(line, depth)) return list;
  if (auto whole = matched(line, depth)) return whole;
  if (const std::string plural = base::counts_in_plural(line); plural != line)
    if (auto whole = matched(plural, depth)) return whole;
  for (const Text& mark : {Text{": ##label"}, Text{"; ##label"}})
    for (size_t at = line.rfind(mark.english); at != std::string_view::npos && at > 0; at = line.rfind(mark.english, at - 1)) {
      const std::string_view left = line.substr(0, at), right = line.substr(at + mark.english.size());
      auto first = matched(left, depth + 1), then = matched(right, depth + 1);
      if (first || then)
        return first.value_or(std::string(left)) + std::string(mark.in(Language::kChinese)) + then.value_or(std::string(right));
    }
  return std::nullopt;
}

// A list, whose every line is one of ours, or a first line of ours ("its last output:") and the output of a program below it.
std::string lines_in(Language language, const std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view head = std::string_view(text).substr(0, end);
  const std::string first = said_in(language, head);
  const bool may_be_list = first != head && !head.ends_with(':');
  std::string list = first;
  for (size_t at = end; at < text.size();) {
    const size_t next = std::min(text.find('\n', at + 1), text.size());
    const std::string_view line = std::string_view(text).substr(at + 1, next - at - 1);
    const std::string said = said_in(language, line);
    if (said == line || !may_be_list) return first + text.substr(end);
    list += "\n" + said;
    at = next;
  }
  return list;
}

}  // namespace

std::string said_in(Language language, std::string_view english) {
  if (language == Language::kEnglish) return std::string(english);
  return looked_up(english, 0).value_or(std::string(english));
}

std::string render(const base::Error& error, Language language) {
  if (language == Language::kEnglish) return error.render();
  base::Error in_chinese = error;
  in_chinese.message = lines_in(language, error.message);
  in_chinese.cause = lines_in(language, error.cause);
  in_chinese.hint = lines_in(language, error.hint);
  for (std::string& doing : in_chinese.context) doing = lines_in(language, doing);
  std::string out;
  const std::string text = in_chinese.render();
  // Labels begin lines; lines of the texts themselves are indented further.
  for (std::string_view line : base::split_lines(text)) {
    for (const Text& label : {Text{"error: ##label"}, Text{"  while ##label"}, Text{"  because ##label"}, Text{"hint: ##label"}})
      if (line.starts_with(label.english)) {
        out += label.in(language);
        line.remove_prefix(label.english.size());
        break;
      }
    out += std::string(line) + "\n";
  }
  return out;
}

}  // namespace phalanx::words
