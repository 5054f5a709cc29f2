// Lines as programs wrote them, from what terminals and collectors of logs made of them: a line that was broken at a width is put together
// again, and of a line that is a JSON object the message is taken out. A block keeps its number of lines: a line that is put together
// stands where its first part stood, and empty lines follow it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/logs/scan_words.h"

namespace phalanx::diagnosis {

class LineRebuilder {
 public:
  explicit LineRebuilder(ScanMatcher& matcher) : matcher_(matcher) {}

  // block: whole lines of one file, in order from call to call. Nothing: all are as they were written. hits becomes what the matcher's
  // search finds in what is given back, or in the block.
  std::optional<std::string> rebuild(std::string_view block, std::vector<LiteralSearch::Hit>& hits);

 private:
  using Hits = std::span<const LiteralSearch::Hit>;
  struct Shape {
    bool json = false;
    bool broken = false;  // perhaps
    size_t lines = 0;     // of the block, if it is broken
  };
  Shape measure(std::string_view block);
  // Lines that are put together to one.
  struct Whole {
    size_t parts = 0;
    std::string text;
  };
  // The lines of a block with what is known of each, so that it is found out once.
  class Lines;
  // Parts that may be one line: with nothing between them, or with blanks.
  struct Joint {
    std::string text;
    std::vector<LiteralSearch::Seam> seams;
    std::vector<LiteralSearch::Hit> across;  // found at the seams
  };
  Joint join(const Lines& lines, size_t first, size_t parts, bool blanks) const;
  Whole whole_at(Lines& lines, size_t first, bool at_words);
  void search(std::string_view text, std::vector<LiteralSearch::Hit>& hits) const;
  size_t counted(Hits hits) const;
  bool of_nccl(Hits hits) const;
  const Signature* known(std::string_view text, Hits hits, Hits more = {});
  bool worth_converting(std::string_view line, Hits hits) const;
  std::optional<std::string> without_json(std::string_view block, Hits hits);
  std::optional<std::string> without_breaks(std::string_view block, Hits hits, size_t number);
  bool may_be_full(std::string_view line, std::string_view next, bool at_words) const;
  bool is_full(size_t width, std::string_view next, bool at_words) const;
  bool is_full(Lines& lines, size_t line, bool at_words) const;
  std::optional<std::string> joined(const Lines& lines, size_t first, size_t parts, bool at_words);

  ScanMatcher& matcher_;
  size_t widest_ = 0;  // columns of the widest line of the file so far
  int convert_ = 0;    // JSON lines that are converted even if nothing in them is known: the rest of a traceback
};

// The message of a line that is a JSON object, as a line with tags (diagnosis/logs/line.h), several lines of it divided by "\r"; what
// stands in front of the object is kept. Nothing: it is no object, or has no message.
std::optional<std::string> message_of_json(std::string_view line);

}  // namespace phalanx::diagnosis
