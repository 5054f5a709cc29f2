#include "tune/chat/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

using base::Json;
using Found = std::optional<Conversation>;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

base::Error wrong(std::string why) { return base::fail(base::ErrorKind::kConfig, "cannot use a record").because(std::move(why)); }

// The text of a column. Empty where the column is not read, the record lacks it, or it is null.
base::Result<std::string> text_of(const Json& record, const std::string& column) {
  if (column.empty()) return std::string();
  auto found = record.find(column);
  if (found == record.end() || found->is_null()) return std::string();
  if (!found->is_string()) return wrong(fmt::format("{} is not a text", base::quote(column)));
  return found->get<std::string>();
}

base::Status add_history(const Json& record, const std::string& column, Conversation* out) {
  if (column.empty()) return base::ok();
  auto found = record.find(column);
  if (found == record.end() || !found->is_array()) return base::ok();
  for (const Json& turn : *found) {
    if (!turn.is_array() || turn.size() != 2 || !turn[0].is_string() || !turn[1].is_string())
      return wrong(fmt::format("{} is not a list of pairs of texts", base::quote(column)));
    out->messages.push_back(turn[0].get<std::string>());
    out->messages.push_back(turn[1].get<std::string>());
  }
  return base::ok();
}

base::Result<std::string> question_of(const Json& record, const Columns& columns) {
  TRY_ASSIGN(std::string prompt, text_of(record, columns.prompt));
  TRY_ASSIGN(const std::string query, text_of(record, columns.query));
  if (!prompt.empty() && !query.empty()) prompt += '\n';
  return prompt + query;
}

base::Result<Found> question_of_alpaca(const Json& record, const Columns& columns) {
  Conversation out;
  TRY(add_history(record, columns.history, &out));
  TRY_ASSIGN(std::string question, question_of(record, columns));
  out.messages.push_back(std::move(question));
  TRY_ASSIGN(out.system, text_of(record, columns.system));
  return Found(std::move(out));
}

base::Result<Found> from_alpaca(const Json& record, const Columns& columns) {
  TRY_ASSIGN(Found out, question_of_alpaca(record, columns));
  auto response = columns.response.empty() ? record.end() : record.find(columns.response);
  if (response == record.end() || !response->is_string()) return Found();
  out->messages.push_back(response->get<std::string>());
  return out;
}

struct Message {
  std::string role, content;
};

base::Result<std::vector<Message>> messages_of(const Json& record, const Columns& columns) {
  auto found = columns.messages.empty() ? record.end() : record.find(columns.messages);
  if (found == record.end() || !found->is_array()) return wrong(fmt::format("{} is not a list of messages", base::quote(columns.messages)));
  std::vector<Message> out;
  for (const Json& message : *found) {
    const auto role = base::get_string(message, columns.role_tag), content = base::get_string(message, columns.content_tag);
    if (!role || !content)
      return wrong(fmt::format("message {} lacks {} or {}", out.size(), base::quote(columns.role_tag), base::quote(columns.content_tag)));
    out.push_back({*role, *content});
  }
  return out;
}

// System text and messages in turn; nothing if roles do not alternate.
base::Result<Found> turns_of(const Json& record, const Columns& columns) {
  TRY_ASSIGN(const std::vector<Message> messages, messages_of(record, columns));
  Conversation out;
  const bool has_system = !columns.system_tag.empty() && !messages.empty() && messages[0].role == columns.system_tag;
  if (has_system) {
    out.system = messages[0].content;
  } else {
    TRY_ASSIGN(out.system, text_of(record, columns.system));
  }
  for (size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role == columns.observation_tag || role == columns.function_tag)
      return wrong(fmt::format("message {} has the role {}: tools are not supported", i, base::quote(role)));
    if (role != (out.messages.size() % 2 == 0 ? columns.user_tag : columns.assistant_tag)) return Found();
    out.messages.push_back(messages[i].content);
  }
  return out.messages.empty() ? Found() : Found(std::move(out));
}

base::Result<Found> from_sharegpt(const Json& record, const Columns& columns) {
  TRY_ASSIGN(Found out, turns_of(record, columns));
  return out && out->messages.size() % 2 == 0 ? out : Found();
}

// alpaca: a text; sharegpt: a message of the assistant. Nothing: it is neither.
std::optional<std::string> answer_of(const Json& record, const std::string& column, const DatasetInfo& info) {
  if (info.formatting == Formatting::kAlpaca) return base::get_string(record, column);
  auto found = record.find(column);
  if (found == record.end() || !found->is_object()) return std::nullopt;
  if (base::get_string(*found, info.columns.role_tag) != info.columns.assistant_tag) return std::nullopt;
  return base::get_string(*found, info.columns.content_tag);
}

}  // namespace

RecordReader::RecordReader(std::string_view file) : rest_(file), size_(file.size()) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  skip_blanks();
  array_ = !rest_.empty() && rest_.front() == '[';
  if (array_) rest_.remove_prefix(1);
}

base::Error RecordReader::bad(std::string why) const {
  return base::fail(base::ErrorKind::kConfig, fmt::format("record {} (line {}) is malformed", record_, line_)).because(std::move(why));
}

void RecordReader::skip_blanks() {
  while (!rest_.empty() && is_blank(rest_.front())) {
    if (rest_.front() == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
}

// Just behind the brace that closes the object at the start.
base::Result<size_t> RecordReader::object_end() const {
  int depth = 0;
  bool quoted = false;
  const size_t end = std::min(rest_.size(), kMaxRecordBytes + 1);
  for (size_t at = 0; at < end; ++at) {
    const char c = rest_[at];
    if (quoted) {
      if (c == '\\') ++at;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  if (rest_.size() > kMaxRecordBytes) return bad(base::counted("it is longer than {} bytes", kMaxRecordBytes));
  return bad("the file ends inside it");
}

base::Result<std::optional<Json>> RecordReader::next() {
  skip_blanks();
  if (array_ && record_ >= 0 && rest_.starts_with(',')) {
    rest_.remove_prefix(1);
    skip_blanks();
  } else if (array_ && record_ >= 0 && !rest_.starts_with(']')) {
    ++record_;
    return bad("a comma or the end of the list is missing before it");
  }
  line_ = next_line_;
  if (array_ && rest_.starts_with(']')) {
    rest_.remove_prefix(1);
    skip_blanks();
    if (!rest_.empty()) return bad("text follows the end of the list");
    array_ = false;
    return std::optional<Json>();
  }
  if (rest_.empty() && !array_) return std::optional<Json>();
  ++record_;
  if (!rest_.starts_with('{')) return bad("it is not an object");
  TRY_ASSIGN(const size_t length, object_end());
  const std::string_view text = rest_.substr(0, length);
  auto json = base::parse_json(text, kMaxRecordBytes);
  if (!json.ok()) return bad(json.error().message);
  next_line_ += std::count(text.begin(), text.end(), '\n');
  rest_.remove_prefix(length);
  return std::optional<Json>(std::move(*json));
}

base::Result<Found> to_conversation(const Json& record, const DatasetInfo& info) {
  return info.formatting == Formatting::kAlpaca ? from_alpaca(record, info.columns) : from_sharegpt(record, info.columns);
}

base::Result<std::optional<Preference>> to_preference(const Json& record, const DatasetInfo& info) {
  using Pair = std::optional<Preference>;
  const bool alpaca = info.formatting == Formatting::kAlpaca;
  TRY_ASSIGN(Found prompt, alpaca ? question_of_alpaca(record, info.columns) : turns_of(record, info.columns));
  std::optional<std::string> chosen = answer_of(record, info.columns.chosen, info),
                             rejected = answer_of(record, info.columns.rejected, info);
  if (!prompt || prompt->messages.size() % 2 == 0 || !chosen || !rejected) return Pair();
  return Pair(Preference{std::move(*prompt), std::move(*chosen), std::move(*rejected)});
}

base::Result<std::optional<std::string>> to_plain_text(const Json& record, const DatasetInfo& info) {
  using Text = std::optional<std::string>;
  if (info.formatting == Formatting::kSharegpt) {
    TRY_ASSIGN(const std::vector<Message> messages, messages_of(record, info.columns));
    for (const Message& message : messages)
      if (info.columns.system_tag.empty() || message.role != info.columns.system_tag) return Text(message.content);
    return Text();
  }
  TRY_ASSIGN(std::string text, question_of(record, info.columns));
  return text.empty() ? Text() : Text(std::move(text));
}

}  // namespace phalanx::tune
