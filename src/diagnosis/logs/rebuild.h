// Lines as programs wrote them, from what terminals and collectors of logs made of them: a line that was broken at a width is put together
// again, and of a line that is a JSON object the message is taken out. A block keeps its number of lines: a line that is put together
// stands where its first part stood, and empty lines follow it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/logs/scan_words.h"

namespace phalanx::diagnosis {

class LineRebuilder {
 public:
  explicit LineRebuilder(ScanMatcher& matcher) : matcher_(matcher) {}

  // block: whole lines of one file, in order from call to call. Nothing: all are as they were written.
  std::optional<std::string> rebuild(std::string_view block);

 private:
  struct Shape {
    bool json = false;
    bool broken = false;  // perhaps
  };
  Shape measure(std::string_view block);
  // Lines that are put together to one.
  struct Whole {
    size_t parts = 0;
    std::string text;
  };
  Whole whole_at(const std::vector<std::string_view>& lines, size_t first, bool at_words);
  size_t literals_in(std::string_view text) const;
  const Signature* known(std::string_view text);
  bool worth_converting(std::string_view line, std::vector<LiteralSearch::Hit>& hits) const;
  std::string without_json(std::string_view block);
  std::optional<std::string> without_breaks(std::string_view block);
  bool is_full(std::string_view line, std::string_view next, bool at_words) const;
  std::optional<std::string> joined(const std::vector<std::string_view>& parts, bool at_words);

  ScanMatcher& matcher_;
  size_t widest_ = 0;  // columns of the widest line of the file so far
  int convert_ = 0;    // JSON lines that are converted even if nothing in them is known: the rest of a traceback
};

// The message of a line that is a JSON object, as a line with tags (diagnosis/logs/line.h), several lines of it divided by "\r"; what
// stands in front of the object is kept. Nothing: it is no object, or has no message.
std::optional<std::string> message_of_json(std::string_view line);

}  // namespace phalanx::diagnosis
