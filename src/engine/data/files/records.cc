#include "engine/data/files/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::data {
namespace {

base::Error bad_record(std::string why) { return base::fail(base::ErrorKind::kConfig, "malformed line").because(std::move(why)); }

base::Status check_length(std::string_view line) {
  if (line.size() <= kMaxLineBytes) return base::ok();
  return bad_record(fmt::format("the line is longer than {} bytes", kMaxLineBytes));
}

base::Result<std::string> take(const base::Json& object, const std::string& field) {
  if (auto text = base::get_string(object, field)) return std::move(*text);
  auto found = object.find(field);
  if (found != object.end()) return bad_record(fmt::format("its field {} is {}, not text", base::quote(field), found->type_name()));
  std::vector<std::string> names;
  for (const auto& item : object.items())
    if (names.size() < 8) names.push_back(base::quote(item.key(), 40));
  return bad_record(
      fmt::format("it has no field {}; its fields are {}", base::quote(field), names.empty() ? "none" : base::join(names, ", ")));
}

}  // namespace

std::optional<uint64_t> LineCursor::next() {
  while (next_ < text_.size()) {
    const uint64_t begin = next_;
    const void* end = std::memchr(text_.data() + begin, '\n', text_.size() - begin);
    next_ = end ? static_cast<uint64_t>(static_cast<const char*>(end) - text_.data()) + 1 : text_.size();
    for (uint64_t i = begin; i < next_; ++i)
      if (!base::is_blank(text_[i])) return begin;
  }
  return std::nullopt;
}

std::string_view line_at(std::string_view text, uint64_t offset) {
  std::string_view rest = text.substr(std::min<uint64_t>(offset, text.size()), kMaxLineBytes + 2);
  std::string_view line = rest.substr(0, rest.find('\n'));
  if (line.ends_with('\r') && line.size() <= kMaxLineBytes + 1) line.remove_suffix(1);
  return line.substr(0, kMaxLineBytes + 1);
}

uint64_t line_number(std::string_view text, uint64_t offset) {
  std::string_view before = text.substr(0, offset);
  return static_cast<uint64_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

base::Result<Record> parse_json_record(std::string_view line, const RecordFields& fields) {
  TRY(check_length(line));
  if (!base::is_utf8(line)) return bad_record("it is not UTF-8");
  auto json = base::parse_json(line, kMaxLineBytes);
  if (!json.ok()) return bad_record(fmt::format("{}: {}", json.error().message, base::quote(line, 60)));
  if (!json->is_object()) return bad_record(fmt::format("it is {}, not an object of fields", json->type_name()));
  Record record;
  TRY_ASSIGN(record.text, take(*json, fields.text));
  if (fields.prompt.empty()) return record;
  TRY_ASSIGN(record.prompt, take(*json, fields.prompt));
  return record;
}

base::Result<Record> parse_text_record(std::string_view line) {
  TRY(check_length(line));
  return Record{"", std::string(line)};
}

}  // namespace phalanx::engine::data
