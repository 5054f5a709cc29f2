#include "logs/nccl/line.h"

#include <array>

#include "base/text.h"

namespace phalanx::logs {
namespace {

using base::is_digit;
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_host(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.'; }

// Reads backwards from the end of a text.
class Backwards {
 public:
  explicit Backwards(std::string_view text) : rest_(text) {}
  bool literal(char c) {
    if (rest_.empty() || rest_.back() != c) return false;
    rest_.remove_suffix(1);
    return true;
  }
  std::optional<int64_t> number() {
    size_t digits = 0;
    while (digits < rest_.size() && is_digit(rest_[rest_.size() - 1 - digits])) ++digits;
    if (digits == 0 || digits > 18) return std::nullopt;
    int64_t value = 0;
    for (char c : rest_.substr(rest_.size() - digits)) value = value * 10 + (c - '0');
    rest_.remove_suffix(digits);
    if (literal('-')) value = -value;
    return value;
  }
  std::string_view word(bool (*belongs)(char)) {
    size_t size = 0;
    while (size < rest_.size() && belongs(rest_[rest_.size() - 1 - size])) ++size;
    std::string_view text = rest_.substr(rest_.size() - size);
    rest_.remove_suffix(size);
    return text;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool not_blank(char c) { return c != ' '; }

// "HOST:PID:TID [DEV] " at the end of `head`.
bool read_origin(std::string_view head, NcclRecord& record, size_t& begins) {
  Backwards back(head);
  if (!back.literal(' ') || !back.literal(']')) return false;
  std::optional<int64_t> device = back.number();
  if (!device || !back.literal('[') || !back.literal(' ')) return false;
  std::optional<int64_t> tid = back.number();
  if (!tid || !back.literal(':')) return false;
  std::optional<int64_t> pid = back.number();
  if (!pid || !back.literal(':')) return false;
  record.host = back.word(is_host);
  record.device = static_cast<int>(*device < -1 || *device > 1023 ? -1 : *device);
  record.tid = *tid;
  record.pid = *pid;
  begins = back.rest().size();
  return !record.host.empty();
}

// The same with "FILE:LINE " or "FILE:LINE (FUNCTION) " after it.
bool read_origin_of_warning(std::string_view head, NcclRecord& record, size_t& begins) {
  Backwards back(head);
  if (!back.literal(' ')) return false;
  if (back.literal(')')) {
    back.word([](char c) { return c != '(' && c != ' '; });
    if (!back.literal('(') || !back.literal(' ')) return false;
  }
  record.place = back.word(not_blank);
  return !record.place.empty() && read_origin(back.rest(), record, begins);
}

struct Mark {
  std::string_view text;
  NcclRecord::Level level;
};
constexpr std::array kMarks = {Mark{"NCCL INFO ", NcclRecord::Level::kInfo}, Mark{"NCCL WARN ", NcclRecord::Level::kWarn}};

}  // namespace

std::vector<NcclRecord> nccl_records(std::string_view line) {
  std::vector<NcclRecord> records;
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  for (size_t at = line.find("NCCL "); at != std::string_view::npos; at = line.find("NCCL ", at + 5)) {
    for (const Mark& mark : kMarks) {
      if (line.substr(at, mark.text.size()) != mark.text) continue;
      NcclRecord record;
      record.level = mark.level;
      size_t begins = 0;
      std::string_view head = line.substr(0, at);
      if (!read_origin(head, record, begins) && !read_origin_of_warning(head, record, begins)) continue;
      record.message = line.substr(at + mark.text.size());
      if (!records.empty()) {  // another record began inside the one before, which ends there
        std::string_view& before = records.back().message;
        size_t start = static_cast<size_t>(before.data() - line.data());
        before = begins > start ? before.substr(0, begins - start) : std::string_view();
      }
      records.push_back(record);
    }
  }
  if (records.empty() && line.size() < 256) {
    size_t at = line.rfind("NCCL version ");
    if (at != std::string_view::npos && at + 13 < line.size() && is_digit(line[at + 13]))
      records.push_back({NcclRecord::Level::kVersion, {}, 0, 0, -1, {}, line.substr(at)});
  }
  return records;
}

bool NcclScanner::literal(std::string_view text) {
  if (rest_.substr(0, text.size()) != text) return false;
  rest_.remove_prefix(text.size());
  return true;
}

std::optional<int64_t> NcclScanner::number() {
  size_t sign = !rest_.empty() && rest_[0] == '-' ? 1 : 0, end = sign;
  while (end < rest_.size() && is_digit(rest_[end])) ++end;
  if (end == sign || end - sign > 18) return std::nullopt;
  int64_t value = 0;
  for (char c : rest_.substr(sign, end - sign)) value = value * 10 + (c - '0');
  rest_.remove_prefix(end);
  return sign ? -value : value;
}

std::string_view NcclScanner::hex() {
  size_t end = rest_.substr(0, 2) == "0x" ? 2 : 0, digits = end;
  while (end < rest_.size() && is_hex(rest_[end])) ++end;
  if (end == digits) return {};
  std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return text;
}

void NcclScanner::blanks() {
  while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
}

std::string_view NcclScanner::word() {
  blanks();
  std::string_view text = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(text.size());
  return text;
}

std::string_view NcclScanner::until(char end) {
  size_t at = rest_.find(end);
  if (at == std::string_view::npos) return {};
  std::string_view text = rest_.substr(0, at);
  rest_.remove_prefix(at + 1);
  return text;
}

}  // namespace phalanx::logs
