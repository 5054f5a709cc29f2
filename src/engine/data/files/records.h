// Records of text, one a line: plain lines, and JSON Lines. Pure: bytes in, values out; needs no libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::engine::data {

inline constexpr size_t kMaxLineBytes = 16 << 20;  // of one record

// Finds the lines of a text one after the other, however long they are. Lines of blanks only are skipped.
class LineCursor {
 public:
  explicit LineCursor(std::string_view text, uint64_t offset = 0) : text_(text), next_(offset) {}
  // Where the next line begins, counted from the text's start; nothing at the end. The line is line_at(text, offset).
  std::optional<uint64_t> next();
  uint64_t offset() const { return next_; }  // where the search goes on

 private:
  std::string_view text_;
  uint64_t next_;
};

// The line that begins at `offset`, without its "\n" or "\r\n". At most kMaxLineBytes + 1 bytes are looked at: a longer result
// than kMaxLineBytes means that the line is too long.
std::string_view line_at(std::string_view text, uint64_t offset);
// The number of the line at `offset`, from 1. Counts from the start of the text: for errors.
uint64_t line_number(std::string_view text, uint64_t offset);

// Which fields of a JSON object are the record. With a prompt, `text` is what answers it.
struct RecordFields {
  std::string text = "text";
  std::string prompt;  // empty: none
};

struct Record {
  std::string prompt;  // seen by the model, not learned
  std::string text;
};

// A line that is no JSON object, lacks a field, or has something else than a string in it: an error (kConfig) whose cause says so.
// Invalid UTF-8 and NUL bytes are not JSON.
base::Result<Record> parse_json_record(std::string_view line, const RecordFields& fields);
// A line of plain text, of any bytes.
base::Result<Record> parse_text_record(std::string_view line);

}  // namespace phalanx::engine::data
