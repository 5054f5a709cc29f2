// The records of a data file: a JSON array, or objects one after another (JSON lines). The text is cut into records without being parsed as
// a whole, so that a file may be larger than memory and an error names the record and its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tune/chat/conversation.h"
#include "tune/chat/dataset_info.h"

namespace phalanx::tune {

inline constexpr size_t kMaxRecordBytes = 16 << 20;

class RecordReader {
 public:
  explicit RecordReader(std::string_view file);
  // The next record, an object; nothing at the end. Error kConfig with record and line; nothing can be read after one.
  base::Result<std::optional<base::Json>> next();
  int64_t record() const { return record_; }  // of the last one, from 0
  int64_t line() const { return line_; }      // where it starts, from 1
  size_t bytes_read() const { return size_ - rest_.size(); }

 private:
  base::Error bad(std::string why) const;
  void skip_blanks();
  base::Result<size_t> object_end() const;

  std::string_view rest_;
  size_t size_;  // of the whole file
  bool array_ = false;
  int64_t record_ = -1;
  int64_t line_ = 1;
  int64_t next_line_ = 1;
};

// What LLaMA-Factory learns from a record. Nothing: it would leave the record out with a warning, because there is no answer, the number of
// messages is odd, or roles do not alternate. Error kConfig: a column is missing or of a wrong type, or messages use tools.
base::Result<std::optional<Conversation>> to_conversation(const base::Json& record, const DatasetInfo& info);

// The pair of answers of a record of a data set with ranking. Nothing and errors as above.
base::Result<std::optional<Preference>> to_preference(const base::Json& record, const DatasetInfo& info);

// The text of a record for stage pt: its prompt, or its first message. Nothing: it has none. Error kConfig as above.
base::Result<std::optional<std::string>> to_plain_text(const base::Json& record, const DatasetInfo& info);

}  // namespace phalanx::tune
