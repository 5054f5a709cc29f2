#include "base/glob.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

constexpr size_t kLongestPattern = 1024;

unsigned char byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Reads "[…]" starting after the '['; moves `i` past the ']'. Null on a malformed set.
std::optional<std::bitset<256>> read_set(std::string_view pattern, size_t& i) {
  bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  std::bitset<256> set;
  for (bool first = true; i < pattern.size(); first = false) {
    if (pattern[i] == ']' && !first) {  // a ']' in first place is a member, as in POSIX
      ++i;
      return negated ? ~set : set;
    }
    unsigned char low = byte_at(pattern, i++);
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = byte_at(pattern, i + 1);
      i += 2;
    }
    if (high < low) return std::nullopt;
    for (int c = low; c <= high; ++c) set.set(static_cast<size_t>(c));
  }
  return std::nullopt;
}

}  // namespace

Result<Glob> Glob::compile(std::string_view pattern) {
  if (pattern.empty()) return fail(ErrorKind::kUsage, "an empty pattern matches nothing");
  if (pattern.size() > kLongestPattern)
    return fail(ErrorKind::kUsage, counted("the pattern is {} bytes long; the limit is {}", pattern.size(), kLongestPattern));
  Glob glob;
  glob.pattern_ = pattern;
  for (size_t i = 0; i < pattern.size();) {
    Element element;
    char c = pattern[i++];
    if (c == '*') {
      element.star = true;
      if (!glob.elements_.empty() && glob.elements_.back().star) continue;
    } else if (c == '?') {
      element.set.set();
    } else if (c == '[') {
      auto set = read_set(pattern, i);
      if (!set)
        return fail(ErrorKind::kUsage, fmt::format("{} is not a pattern", quote(pattern)))
            .because("a '[' starts a set that is not well formed");
      element.set = *set;
    } else {
      element.set.set(static_cast<unsigned char>(c));
    }
    glob.elements_.push_back(element);
  }
  return glob;
}

bool Glob::matches(std::string_view name) const {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t element = 0;
  size_t at = 0;
  size_t star = kNone;  // the last star passed …
  size_t star_end = 0;  // … and where in the name its run ends so far
  while (at < name.size()) {
    if (element < elements_.size() && elements_[element].star) {
      star = element++;
      star_end = at;
    } else if (element < elements_.size() && elements_[element].set.test(byte_at(name, at))) {
      ++element;
      ++at;
    } else if (star != kNone) {
      element = star + 1;
      at = ++star_end;
    } else {
      return false;
    }
  }
  while (element < elements_.size() && elements_[element].star) ++element;
  return element == elements_.size();
}

bool glob_match(std::string_view pattern, std::string_view name) {
  auto glob = Glob::compile(pattern);
  return glob.ok() && glob->matches(name);
}

}  // namespace phalanx::base
