// Secrets that were passed on to the ranks, found again in what is given away (`phalanx report`), without keeping them: a file of the run
// has for each its length and 32 bits of an HMAC under a random key. That is enough to find the value in a text, where it stands as
// a word, and does not tell it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::logs {

class PassedValues {
 public:
  static constexpr size_t kLeastBytes = 6;  // shorter values are parts of ordinary text
  static constexpr size_t kMost = 256;      // values of one run

  // key: random bytes. values: shorter and further ones than the limits above are omitted.
  PassedValues(std::string key, const std::vector<std::string>& values);
  PassedValues() = default;

  // As JSON, and back. Text that is not of that form gives no values.
  std::string text() const;
  static PassedValues read(std::string_view text);

  bool empty() const { return marks_.empty(); }
  // Every value replaced by kRedacted (logs/redact.h) where letters and digits do not go on before or after it. found: as in redact().
  std::string mask(std::string_view text, size_t* found) const;

 private:
  struct Mark {
    size_t length = 0;
    uint32_t digest = 0;
    bool operator==(const Mark&) const = default;
  };
  uint32_t digest(std::string_view value) const;

  std::string key_;
  std::vector<Mark> marks_;  // longest first: a value may contain another
};

}  // namespace phalanx::logs
