// Cuts text into the words that BPE merges within. The three patterns that byte-level models use are scanners of our own, chosen by the
// text of the pattern: a regular expression in the inner loop would cost more than the merging. Source of the patterns: the tokenizer.json
// files of GPT-2, Llama 3 and Qwen 2; of their semantics: Oniguruma, which the tokenizers library uses (\s is Unicode White_Space, (?i:)
// folds by Unicode, \p{L} contains no combining marks).
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace phalanx::tune {

enum class SplitPattern { kGpt2, kLlama3, kQwen2 };

// The pattern with exactly this text; nothing if it is none of the three.
std::optional<SplitPattern> known_pattern(std::string_view regex);

struct PreTokenizer {
  enum class Digits { kNone, kRuns, kSingle };
  Digits digits = Digits::kNone;  // numbers are cut out before the pattern is applied: runs of them, or each alone
  std::optional<SplitPattern> pattern;
  bool add_prefix_space = false;  // in front of a text that does not start with one
};

// The length of the word at the start of `text`, which is well-formed UTF-8 and not empty. At least 1.
size_t next_word(std::string_view text, SplitPattern pattern);

// Calls `word` with each word of `text` (well-formed UTF-8), in order; together they are the text, with its prefix space if one is added.
void for_each_word(std::string_view text, const PreTokenizer& how, const std::function<void(std::string_view)>& word);

}  // namespace phalanx::tune
