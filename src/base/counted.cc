#include "base/counted.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace phalanx::base {
namespace {

struct Forms {
  std::string_view one;
  std::string_view many;
};

constexpr std::string_view kNouns =
    "argument attempt batch byte card case channel code communicator connection copy core CPU day device dimension directory "
    "document element entry error field file GPU head host instance item kind lane layer level line link log machine micro-batch "
    "network node note number operation other package packet page pair parameter part pass port problem process rank replay restart "
    "row run sample secret sequence slot socket step target task tensor thread time timeout token unit validation value variable "
    "warning worker";

constexpr Forms kVerbs[] = {{"connects", "connect"}, {"does", "do"},      {"has", "have"}, {"is", "are"},
                            {"needs", "need"},       {"starts", "start"}, {"was", "were"}};

// They end a count: what follows is no noun of it.
constexpr std::string_view kNotBetween =
    "and are as at be between by drops for from has have in is no not of on or per than the to was were with";

constexpr int kMostAdjectives = 2;

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; }

std::string_view word_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && letter(text[end])) ++end;
  return text.substr(at, end - at);
}

enum class Number { kOne, kMany };

std::string plural(std::string_view noun) {
  const char last = noun.back(), before = noun[noun.size() - 2];
  if (last == 'y' && std::string_view("aeiou").find(before) == std::string_view::npos)
    return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  return std::string(noun) + (last == 's' || noun.ends_with("ch") ? "es" : "s");
}

// Empty: no noun, or it has that number already.
std::string noun_in(Number wanted, std::string_view word) {
  if (wanted == Number::kMany) return is_listed(word, kNouns) ? plural(word) : "";
  for (std::string_view ending : {"s", "es", "ies"}) {
    if (!word.ends_with(ending)) continue;
    const std::string one = std::string(word.substr(0, word.size() - ending.size())) + (ending == "ies" ? "y" : "");
    if (is_listed(one, kNouns) && plural(one) == word) return one;
  }
  return "";
}

std::string_view verb_in(Number wanted, std::string_view word) {
  for (const Forms& form : kVerbs)
    if (word == (wanted == Number::kOne ? form.many : form.one)) return wanted == Number::kOne ? form.one : form.many;
  return "";
}

// `words` follow a number.
std::string in_number(std::string_view words, Number wanted) {
  size_t at = 0;
  for (int before = 0; before <= kMostAdjectives; ++before) {
    if (at >= words.size() || words[at] != ' ') break;
    const std::string_view word = word_at(words, at + 1);
    const size_t end = at + 1 + word.size();
    if (word.empty() || is_listed(word, kNotBetween)) break;
    const bool whole = end == words.size() || (words[end] != '/' && words[end] != '=');  // "tokens/s" is a unit, "slots=" a name
    if (const std::string noun = whole ? noun_in(wanted, word) : ""; !noun.empty()) {
      std::string out = std::string(words.substr(0, at + 1)) + noun;
      const std::string_view rest = words.substr(end);
      const std::string_view verb = rest.starts_with(' ') ? word_at(rest, 1) : std::string_view();
      if (const std::string_view agreeing = verb_in(wanted, verb); !agreeing.empty())
        return out + " " + std::string(agreeing) + std::string(rest.substr(1 + verb.size()));
      return out + std::string(rest);
    }
    at = end;
  }
  return std::string(words);
}

// "rank {}": the number names one of many.
bool names_one(std::string_view before) {
  if (before.empty() || before.ends_with('(') || before.ends_with('\n')) return false;
  if (!before.ends_with(' ')) return true;  // "sm_{}"
  before.remove_suffix(1);
  size_t begin = before.size();
  while (begin > 0 && letter(before[begin - 1])) --begin;
  return is_listed(before.substr(begin), kNouns);
}

}  // namespace

std::string singular(std::string_view words) { return in_number(words, Number::kOne); }

std::string format_counted(std::string_view format, fmt::format_args args) {
  std::string agreed;
  int next = 0;
  for (size_t i = 0; i < format.size();) {
    const bool doubled = i + 1 < format.size() && format[i + 1] == format[i];
    if (format[i] != '{' || doubled) {
      const size_t size = doubled && (format[i] == '{' || format[i] == '}') ? 2 : 1;
      agreed += format.substr(i, size);
      i += size;
      continue;
    }
    const size_t end = format.find('}', i), colon = std::min(format.find(':', i), end);
    if (end == std::string_view::npos || format.find('{', i + 1) < end) return fmt::vformat(format, args);  // a width that is an argument
    const std::string index = colon > i + 1 ? std::string(format.substr(i + 1, colon - i - 1)) : std::to_string(next++);
    const bool counts = end + 1 < format.size() && format[end + 1] == ' ' && !names_one(agreed);
    agreed += format.substr(i, end + 1 - i);
    i = end + 1;
    if (!counts || fmt::vformat("{" + index + std::string(format.substr(colon, end + 1 - colon)), args) != "1") continue;
    const size_t fixed = std::min(format.find('{', i), format.size());
    agreed += singular(format.substr(i, fixed - i));
    i = fixed;
  }
  return fmt::vformat(agreed, args);
}

bool has_counts(std::string_view format) {
  for (size_t open = format.find('{'); open != std::string_view::npos; open = format.find('{', open + 1)) {
    const size_t end = format.find('}', open);
    if (end == std::string_view::npos) return false;
    const std::string_view words = format.substr(end + 1, format.find('{', end) - end - 1);
    if (!names_one(format.substr(0, open)) && singular(words) != words) return true;
  }
  return false;
}

std::string counts_in_plural(std::string_view line) {
  std::string out;
  size_t at = 0;
  while (at < line.size()) {
    const bool alone =
        line[at] == '1' && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '(') && at + 1 < line.size() && line[at + 1] == ' ';
    out += line[at++];
    if (!alone || names_one(std::string_view(out).substr(0, out.size() - 1))) continue;
    const size_t end = std::min(line.find_first_of("0123456789", at), line.size());
    out += in_number(line.substr(at, end - at), Number::kMany);
    at = end;
  }
  return out;
}

}  // namespace phalanx::base
