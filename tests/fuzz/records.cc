// Lines and JSON records of any bytes: every line is found once, in order, and a record is text.
#include "engine/data/files/records.h"
#include "base/check.h"
#include "base/unicode.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace engine::data;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const RecordFields dialogue{"response", "prompt"};
  uint64_t number = 0;
  LineCursor cursor(text);
  while (auto offset = cursor.next()) {
    PHALANX_CHECK(*offset < cursor.offset() && cursor.offset() <= size);
    PHALANX_CHECK(*offset == 0 || text[*offset - 1] == '\n');
    const std::string_view line = line_at(text, *offset);
    PHALANX_CHECK(line.find('\n') == std::string_view::npos && !line.empty());
    PHALANX_CHECK(line_number(text, *offset) > number);
    number = line_number(text, *offset);
    PHALANX_CHECK(parse_text_record(line)->text == line);
    for (const RecordFields& fields : {RecordFields{}, dialogue}) {
      auto record = parse_json_record(line, fields);
      if (record.ok()) PHALANX_CHECK(base::is_utf8(record->text) && base::is_utf8(record->prompt));
      else PHALANX_CHECK(!record.error().cause.empty());
    }
  }
  return 0;
}
