#include "tune/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <span>
#include <string>

#include "tune/tokenizer/characters.h"

namespace phalanx::tune {
namespace {

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Look {
  CharacterClass kind;
  uint32_t code_point;
  size_t length;
};

Look look(std::string_view text, size_t at) {
  const Decoded character = decode_at(text, at);
  return {class_of(character.code_point), character.code_point, character.length};
}

// The end of the run of one class that starts at `at`.
size_t end_of_run(std::string_view text, size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Look next = look(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

bool is_line_end(uint32_t c) { return c == '\r' || c == '\n'; }

uint32_t folded(uint32_t c) { return c == 0x17F ? 's' : c >= 'A' && c <= 'Z' ? c + 32 : c; }  // U+017F is the long s

// 's 't 're 've 'm 'll 'd at the start of `text`, which starts with an apostrophe: the length, or 0.
size_t contraction(std::string_view text, bool fold) {
  if (text.size() < 2) return 0;
  const Decoded one = decode_at(text, 1);
  const uint32_t first = fold ? folded(one.code_point) : one.code_point;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 1 + one.length;
  const size_t after = 1 + one.length;
  if (after >= text.size()) return 0;
  const Decoded two = decode_at(text, after);
  const uint32_t second = fold ? folded(two.code_point) : two.code_point;
  const bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return pair ? after + two.length : 0;
}

// \s+(?!\S)|\s+ over a run of spaces that ends at `end`: all of it at the end of the text, else all but its last character.
size_t spaces(std::string_view text, size_t end) {
  if (end == text.size()) return end;
  size_t last = end - 1;
  while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
  return last == 0 ? end : last;
}

size_t next_gpt2(std::string_view text) {
  const Look first = look(text, 0);
  if (first.code_point == '\'')
    if (size_t length = contraction(text, false)) return length;
  if (first.kind != CharacterClass::kSpace) return end_of_run(text, first.length, first.kind);
  if (first.code_point == ' ' && text.size() > 1) {
    const Look second = look(text, 1);
    if (second.kind != CharacterClass::kSpace) return end_of_run(text, 1 + second.length, second.kind);
  }
  return spaces(text, end_of_run(text, 0, CharacterClass::kSpace));
}

size_t others_and_line_ends(std::string_view text, size_t at) {
  at = end_of_run(text, at, CharacterClass::kOther);
  while (at < text.size() && is_line_end(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

size_t next_llama3(std::string_view text, int most_digits) {
  const Look first = look(text, 0);
  if (first.code_point == '\'')
    if (size_t length = contraction(text, true)) return length;
  if (first.kind == CharacterClass::kLetter) return end_of_run(text, first.length, CharacterClass::kLetter);
  if (first.kind == CharacterClass::kNumber) {
    size_t end = first.length;
    for (int count = 1; count < most_digits && end < text.size(); ++count) {
      const Look next = look(text, end);
      if (next.kind != CharacterClass::kNumber) break;
      end += next.length;
    }
    return end;
  }
  const bool has_second = text.size() > first.length;
  const Look second = has_second ? look(text, first.length) : Look{CharacterClass::kSpace, 0, 0};
  if (!is_line_end(first.code_point) && second.kind == CharacterClass::kLetter)
    return end_of_run(text, first.length + second.length, CharacterClass::kLetter);
  if (first.kind == CharacterClass::kOther) return others_and_line_ends(text, first.length);
  if (first.code_point == ' ' && second.kind == CharacterClass::kOther) return others_and_line_ends(text, 1);
  const size_t end = end_of_run(text, 0, CharacterClass::kSpace);
  const size_t line_end = text.substr(0, end).find_last_of("\r\n");
  return line_end != std::string_view::npos ? line_end + 1 : spaces(text, end);
}

using Word = std::function<void(std::string_view)>;

void split_by_pattern(std::string_view text, SplitPattern pattern, const Word& word) {
  while (!text.empty()) {
    const size_t length = next_word(text, pattern);
    word(text.substr(0, length));
    text.remove_prefix(length);
  }
}

void split_by_digits(std::string_view text, PreTokenizer::Digits digits, const Word& word) {
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const Look next = look(text, at);
    if (next.kind != CharacterClass::kNumber) {
      at += next.length;
      continue;
    }
    if (start < at) word(text.substr(start, at - start));
    start = at;
    at = digits == PreTokenizer::Digits::kSingle ? at + next.length : end_of_run(text, at, CharacterClass::kNumber);
    word(text.substr(start, at - start));
    start = at;
  }
  if (start < text.size()) word(text.substr(start));
}

void split_by(std::span<const PreTokenizer::Stage> stages, std::string_view text, const Word& word) {
  if (stages.empty()) return word(text);
  const PreTokenizer::Stage& stage = stages.front();
  // The last stage hands its words straight on: in most models it is the only one.
  const auto further = [&](std::string_view part) { split_by(stages.subspan(1), part, word); };
  const auto cut = [&](const Word& with) {
    if (stage.pattern) split_by_pattern(text, *stage.pattern, with);
    else if (stage.regex) stage.regex->split(text, with);
    else split_by_digits(text, stage.digits, with);
  };
  if (stages.size() == 1) cut(word);
  else cut(further);
}

}  // namespace

std::string_view regex_of(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2: return kGpt2Regex;
    case SplitPattern::kLlama3: return kLlama3Regex;
    case SplitPattern::kQwen2: return kQwen2Regex;
  }
  return {};
}

std::optional<SplitPattern> known_pattern(std::string_view regex) {
  for (SplitPattern one : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2})
    if (regex == regex_of(one)) return one;
  return std::nullopt;
}

size_t next_word(std::string_view text, SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2: return next_gpt2(text);
    case SplitPattern::kLlama3: return next_llama3(text, 3);
    case SplitPattern::kQwen2: return next_llama3(text, 1);
  }
  return text.size();
}

void for_each_word(std::string_view text, const PreTokenizer& how, const Word& word) {
  if (text.empty()) return;
  std::string prefixed;
  if (how.add_prefix_space && text.front() != ' ') {
    prefixed = " " + std::string(text);
    text = prefixed;
  }
  split_by(how.stages, text, word);
}

bool PreTokenizer::gave_up() const {
  return std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.regex && stage.regex->gave_up(); });
}

}  // namespace phalanx::tune
