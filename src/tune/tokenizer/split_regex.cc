#include "tune/tokenizer/split_regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/unicode.h"
#include "tune/tokenizer/characters.h"
#include "tune/tokenizer/json_tree.h"

namespace phalanx::tune {
namespace {

constexpr size_t kMostBytes = 16 << 10;
constexpr unsigned kDeepest = 200;  // groups in groups: the parser calls itself

const OnigUChar* bytes(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

void prepare() {
  static const bool kReady = [] {
    OnigEncoding utf8[] = {ONIG_ENCODING_UTF8};
    onig_initialize(utf8, 1);
    onig_set_parse_depth_limit(kDeepest);
    return true;
  }();
  static_cast<void>(kReady);
}

// The successive matches in a text. An empty one directly behind another is none.
class Matches {
 public:
  Matches(re_pattern_buffer* regex, std::string_view text) : regex_(regex), text_(text), region_(onig_region_new()) {}
  ~Matches() { onig_region_free(region_, 1); }
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;

  // Nothing behind the last one, and where Oniguruma gave up.
  std::optional<std::pair<size_t, size_t>> next() {
    const OnigUChar *start = bytes(text_), *end = start + text_.size();
    while (at_ <= text_.size()) {
      onig_region_clear(region_);
      const int found = onig_search(regex_, start, end, start + at_, end, region_, ONIG_OPTION_NONE);
      gave_up |= found < 0 && found != ONIG_MISMATCH;
      if (found < 0) return std::nullopt;
      const auto from = static_cast<size_t>(region_->beg[0]), to = static_cast<size_t>(region_->end[0]);
      if (from != to || last_end_ != to) {
        at_ = to;
        last_end_ = to;
        return std::pair{from, to};
      }
      at_ += at_ < text_.size() ? decode_at(text_, at_).length : 1;
    }
    return std::nullopt;
  }
  bool gave_up = false;

 private:
  re_pattern_buffer* regex_;
  std::string_view text_;
  OnigRegion* region_;
  size_t at_ = 0;
  std::optional<size_t> last_end_;
};

}  // namespace

base::Result<std::shared_ptr<const SplitRegex>> SplitRegex::compile(std::string_view pattern, bool literal, SplitBehavior behavior,
                                                                    bool invert) {
  if (pattern.empty() || pattern.size() > kMostBytes || !base::is_utf8(pattern)) return unsupported("the split pattern", pattern);
  prepare();
  OnigRegex regex = nullptr;
  OnigErrorInfo about;
  const int code = onig_new(&regex, bytes(pattern), bytes(pattern) + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                            literal ? ONIG_SYNTAX_ASIS : ONIG_SYNTAX_DEFAULT, &about);
  if (code != ONIG_NORMAL) {
    OnigUChar why[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
    const int length = onig_error_code_to_str(why, code, &about);
    return bad_tokenizer(fmt::format("the split pattern {} is malformed: {}", base::quote(pattern),
                                     std::string_view(reinterpret_cast<const char*>(why), static_cast<size_t>(std::max(length, 0)))));
  }
  return std::shared_ptr<const SplitRegex>(new SplitRegex(regex, behavior, invert));
}

SplitRegex::~SplitRegex() { onig_free(regex_); }

std::vector<SplitRegex::Span> SplitRegex::spans(std::string_view text) const {
  std::vector<Span> out;
  Matches matches(regex_, text);
  size_t done = 0;
  while (const auto match = matches.next()) {
    if (done != match->first) out.push_back({done, match->first, invert_});
    out.push_back({match->first, match->second, !invert_});
    done = match->second;
  }
  if (done != text.size()) out.push_back({done, text.size(), invert_});
  if (matches.gave_up) gave_up_ = true;
  return out;
}

std::vector<SplitRegex::Span> SplitRegex::joined(std::vector<Span> all) const {
  std::vector<Span> out;
  bool before = false;  // whether the span before was a match
  if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(all.begin(), all.end());
  for (const Span& one : all) {
    bool joins = false;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (one.matches) continue;
        break;
      case SplitBehavior::kIsolated: break;
      case SplitBehavior::kMergedWithPrevious:
      case SplitBehavior::kMergedWithNext: joins = one.matches && !before; break;
      case SplitBehavior::kContiguous: joins = one.matches == before; break;
    }
    before = one.matches;
    if (!joins || out.empty()) {
      out.push_back(one);
      continue;
    }
    out.back().start = std::min(out.back().start, one.start);
    out.back().end = std::max(out.back().end, one.end);
  }
  if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(out.begin(), out.end());
  return out;
}

void SplitRegex::split(std::string_view text, const std::function<void(std::string_view)>& word) const {
  for (const Span& one : joined(spans(text)))
    if (one.start < one.end) word(text.substr(one.start, one.end - one.start));
}

}  // namespace phalanx::tune
