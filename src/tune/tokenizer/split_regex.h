// The stage Split of a pre-tokenizer with a pattern that has no scanner of its own (pre_tokenizer.h): a regular expression of Oniguruma,
// which the tokenizers library uses too, so that every pattern means what it means there.
// Source: huggingface/tokenizers v0.21.0, tokenizers/src/tokenizer/{pattern,normalizer}.rs; rust-onig v6.4.0, onig/src/find.rs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

struct re_pattern_buffer;  // Oniguruma's

namespace phalanx::tune {

// What becomes of the matches: they are left out, words of their own, ends of the words before or starts of those behind them, or words
// together with matches beside them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

class SplitRegex {
 public:
  // `literal`: the pattern is a text. `invert`: what does not match is treated as matches are. Error kConfig: not a pattern, with what
  // Oniguruma says of it.
  static base::Result<std::shared_ptr<const SplitRegex>> compile(std::string_view pattern, bool literal, SplitBehavior behavior,
                                                                 bool invert);
  ~SplitRegex();
  SplitRegex(const SplitRegex&) = delete;
  SplitRegex& operator=(const SplitRegex&) = delete;

  // Calls `word` with each word of `text` (well-formed UTF-8), none of which is empty, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& word) const;
  // Whether a text took more steps than Oniguruma allows: its words are not to be used. The tokenizers library panics there.
  bool gave_up() const { return gave_up_; }

 private:
  struct Span {
    size_t start = 0, end = 0;
    bool matches = false;
  };
  SplitRegex(re_pattern_buffer* regex, SplitBehavior behavior, bool invert) : regex_(regex), behavior_(behavior), invert_(invert) {}
  std::vector<Span> spans(std::string_view text) const;     // all of the text
  std::vector<Span> joined(std::vector<Span> spans) const;  // as the behavior has it

  re_pattern_buffer* regex_;
  SplitBehavior behavior_;
  bool invert_;
  mutable std::atomic<bool> gave_up_ = false;
};

}  // namespace phalanx::tune
