#include "logs/passed_values.h"

#include <algorithm>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/sha256.h"
#include "logs/redact.h"

namespace phalanx::logs {
namespace {

constexpr size_t kMostLength = 1 << 17;  // of a variable, as exec takes it

bool goes_on(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// Whether a word may begin, or end, between the bytes before `at` and at `at`.
bool boundary(std::string_view text, size_t at) { return at == 0 || at >= text.size() || !goes_on(text[at - 1]) || !goes_on(text[at]); }

}  // namespace

PassedValues::PassedValues(std::string key, const std::vector<std::string>& values) : key_(std::move(key)) {
  for (const std::string& value : values) {
    if (value.size() < kLeastBytes || value.size() > kMostLength || marks_.size() == kMost) continue;
    const Mark mark{value.size(), digest(value)};
    if (std::find(marks_.begin(), marks_.end(), mark) == marks_.end()) marks_.push_back(mark);
  }
  std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.length > b.length; });
}

uint32_t PassedValues::digest(std::string_view value) const {
  const std::string whole = base::hmac_sha256(key_, value);
  uint32_t digest = 0;
  for (size_t i = 0; i < 4; ++i) digest = digest << 8 | static_cast<unsigned char>(whole[i]);
  return digest;
}

std::string PassedValues::text() const {
  base::Json key = base::Json::array(), marks = base::Json::array();
  for (char c : key_) key.push_back(static_cast<unsigned char>(c));
  for (const Mark& mark : marks_) marks.push_back({mark.length, mark.digest});
  return base::to_text({{"schema", 1}, {"key", std::move(key)}, {"values", std::move(marks)}}) + "\n";
}

PassedValues PassedValues::read(std::string_view text) {
  PassedValues values;
  base::Result<base::Json> json = base::parse_json(text);
  if (!json.ok() || !json->is_object()) return values;
  auto key = json->find("key"), marks = json->find("values");
  if (key == json->end() || !key->is_array() || marks == json->end() || !marks->is_array()) return values;
  for (const base::Json& byte : *key)
    if (byte.is_number_unsigned()) values.key_ += static_cast<char>(byte.get<uint64_t>() & 255);
  for (const base::Json& mark : *marks) {
    if (!mark.is_array() || mark.size() != 2 || !mark[0].is_number_unsigned() || !mark[1].is_number_unsigned()) continue;
    const uint64_t length = mark[0].get<uint64_t>();
    if (length < kLeastBytes || length > kMostLength || values.marks_.size() == kMost) continue;
    values.marks_.push_back({static_cast<size_t>(length), static_cast<uint32_t>(mark[1].get<uint64_t>())});
  }
  return values;
}

// A digest costs about a microsecond, so it is computed only for pieces that begin and end at the edge of a word.
std::string PassedValues::mask(std::string_view text, size_t* found) const {
  if (marks_.empty()) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    if (boundary(text, at))
      for (const Mark& mark : marks_) {
        if (mark.length > text.size() - at || !boundary(text, at + mark.length)) continue;
        if (digest(text.substr(at, mark.length)) != mark.digest) continue;
        length = mark.length;
        break;
      }
    if (length == 0) {
      out += text[at++];
      continue;
    }
    out += kRedacted;
    at += length;
    if (found) ++*found;
  }
  return out;
}

}  // namespace phalanx::logs
