#include "sync/ignore.h"

#include <cctype>
#include <optional>

#include "base/text.h"

namespace phalanx::sync {
namespace {

bool in_class(std::string_view name, unsigned char c) {
  if (name == "alpha") return std::isalpha(c);
  if (name == "digit") return std::isdigit(c);
  if (name == "alnum") return std::isalnum(c);
  if (name == "upper") return std::isupper(c);
  if (name == "lower") return std::islower(c);
  if (name == "space") return std::isspace(c);
  if (name == "punct") return std::ispunct(c);
  if (name == "xdigit") return std::isxdigit(c);
  return false;
}

// The set that begins at pattern[at] == '['. Returns whether c is in it, and moves `at` behind the set; nothing if the set has no end.
std::optional<bool> set_matches(std::string_view pattern, size_t& at, unsigned char c) {
  size_t i = at + 1;
  bool negated = false, found = false;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) {
    negated = true;
    ++i;
  }
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    if (pattern.substr(i, 2) == "[:") {
      const size_t end = pattern.find(":]", i + 2);
      if (end != std::string_view::npos) {
        found |= in_class(pattern.substr(i + 2, end - i - 2), c);
        i = end + 2;
        continue;
      }
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const auto low = static_cast<unsigned char>(pattern[i++]);
    auto high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
      high = static_cast<unsigned char>(pattern[i++]);
    }
    found |= low <= c && c <= high;
  }
  if (i >= pattern.size()) return std::nullopt;
  at = i + 1;
  return found != negated;
}

// Whether the element at pattern[at] takes the byte c; moves `at` behind the element.
bool takes(std::string_view pattern, size_t& at, unsigned char c) {
  if (pattern[at] == '?') {
    ++at;
    return true;
  }
  if (pattern[at] == '[') {
    if (std::optional<bool> in_set = set_matches(pattern, at, c)) return *in_set;
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return static_cast<unsigned char>(pattern[at++]) == c;
}

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  std::optional<std::pair<size_t, size_t>> star;  // behind the last star, and where it stops taking bytes
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = {++p, n};
      continue;
    }
    if (p < pattern.size() && takes(pattern, p, static_cast<unsigned char>(name[n]))) {
      ++n;
      continue;
    }
    if (!star) return false;
    p = star->first;
    n = ++star->second;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<IgnorePattern> IgnorePattern::parse(std::string_view text) {
  std::vector<IgnorePattern> patterns;
  for (std::string_view line : base::split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#')) continue;
    while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
    IgnorePattern pattern;
    if (line.starts_with('!')) {
      pattern.negated_ = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      pattern.folders_only_ = true;
      line.remove_suffix(1);
    }
    const bool anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) continue;
    if (!anchored) pattern.segments_.emplace_back("**");
    for (std::string_view segment : base::split(line, '/')) pattern.segments_.emplace_back(segment);
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

// As name_matches(), one level up: `**` is the star, a segment the byte. At the end `**` stands for everything inside, not the folder
// itself.
bool IgnorePattern::matches(std::string_view path, bool folder) const {
  if (folders_only_ && !folder) return false;
  const std::vector<std::string_view> names = base::split(path, '/');
  size_t s = 0, n = 0;
  std::optional<std::pair<size_t, size_t>> star;
  while (n < names.size()) {
    if (s < segments_.size() && segments_[s] == "**") {
      if (++s == segments_.size()) return true;
      star = {s, n};
      continue;
    }
    if (s < segments_.size() && name_matches(segments_[s], names[n])) {
      ++s;
      ++n;
      continue;
    }
    if (!star) return false;
    s = star->first;
    n = ++star->second;
  }
  return s == segments_.size();
}

void IgnoreRules::add(std::string folder, std::string_view text, std::string above) {
  std::vector<IgnorePattern> patterns = IgnorePattern::parse(text);
  if (!patterns.empty()) files_.push_back({std::move(folder), std::move(above), std::move(patterns)});
}

bool IgnoreRules::leaves_out(std::string_view path, bool folder) const {
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    std::string within(path);
    if (!file->above.empty()) within = file->above + "/" + within;
    else if (!file->folder.empty() && !path.starts_with(file->folder + "/")) continue;
    else if (!file->folder.empty()) within = within.substr(file->folder.size() + 1);
    for (auto pattern = file->patterns.rbegin(); pattern != file->patterns.rend(); ++pattern)
      if (pattern->matches(within, folder)) return !pattern->negated();
  }
  return false;
}

}  // namespace phalanx::sync
