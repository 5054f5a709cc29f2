// Shell patterns over names: '*' any run of bytes, '?' one byte, '[a-z_]' one of a set, '[!0-9]' or '[^0-9]' one not of
// it. Every other byte stands for itself; there is no escape ('[*]' is a literal star). The whole name must match.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::base {

class Glob {
 public:
  // Error (kUsage): empty, longer than 1,024 bytes, '[' without ']', an empty set, or a range that runs backwards.
  static Result<Glob> compile(std::string_view pattern);

  // Time: at most pattern × name steps, whatever both hold (two-pointer search that retries only the last star).
  bool matches(std::string_view name) const;
  const std::string& pattern() const { return pattern_; }

 private:
  using ByteSet = std::bitset<256>;
  struct Element {
    bool star = false;
    ByteSet set;  // what one byte may be; unused for a star
  };
  std::string pattern_;
  std::vector<Element> elements_;
};

// One match of one pattern; a malformed pattern matches nothing. For many names compile once.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace phalanx::base
