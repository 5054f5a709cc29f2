// Cuts text into the words that BPE merges within. The three patterns that most byte-level models use are scanners of our own, chosen by
// the text of the pattern: a regular expression in the inner loop would cost more than the merging (others: split_regex.h). Source of the
// patterns: the tokenizer.json
// files of GPT-2, Llama 3 and Qwen 2; of their semantics: Oniguruma, which the tokenizers library uses (\s is Unicode White_Space, (?i:)
// folds by Unicode, \p{L} contains no combining marks).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tune/tokenizer/split_regex.h"

namespace phalanx::tune {

enum class SplitPattern { kGpt2, kLlama3, kQwen2 };

std::string_view regex_of(SplitPattern pattern);
// The pattern with exactly this text; nothing if it is none of the three.
std::optional<SplitPattern> known_pattern(std::string_view regex);

struct PreTokenizer {
  enum class Digits { kNone, kRuns, kSingle };
  // One of these: numbers are cut out, runs of them or each alone; a text is cut by a known pattern, or by another one.
  struct Stage {
    Digits digits = Digits::kNone;
    std::optional<SplitPattern> pattern{};
    std::shared_ptr<const SplitRegex> regex{};
  };
  std::vector<Stage> stages;      // each cuts what the one before it has left whole; none: the text is one word
  bool add_prefix_space = false;  // in front of a text that does not start with one
  bool gave_up() const;           // some regex did
};

// The length of the word at the start of `text`, which is well-formed UTF-8 and not empty. At least 1.
size_t next_word(std::string_view text, SplitPattern pattern);

// Calls `word` with each word of `text` (well-formed UTF-8), in order; together they are the text, with its prefix space if one is added,
// and without what a regex removes.
void for_each_word(std::string_view text, const PreTokenizer& how, const std::function<void(std::string_view)>& word);

}  // namespace phalanx::tune
