// The message of a line that a collector of logs wrote as JSON: Docker's "log", Fluent Bit's and Loki's "message" or "line", structlog's
// "event", Google Cloud's "textPayload", journald's "MESSAGE".
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "diagnosis/logs/rebuild.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostInFront = 64;
constexpr size_t kMostLine = 64 << 10;
constexpr int64_t kMostRank = 1 << 20;
constexpr std::array<std::string_view, 8> kMessages = {"log", "message", "msg", "textPayload", "MESSAGE", "text", "line", "event"};
constexpr std::array<std::string_view, 6> kInside = {"record", "data", "event", "fields", "jsonPayload", "kubernetes"};
constexpr std::array<std::string_view, 3> kRanks = {"rank", "global_rank", "RANK"};
constexpr std::array<std::string_view, 7> kTimes = {"time", "timestamp", "ts", "@timestamp", "asctime", "datetime", "date"};

std::optional<std::string> message_in(const base::Json& object) {
  for (std::string_view key : kMessages) {
    auto text = base::get_string(object, key);
    // One word is the name of an event, not a message.
    if (text && !(key == "event" && text->find(' ') == text->npos)) return text;
  }
  return std::nullopt;
}

// "2024-11-20T08:47:12.345Z ": only what read_log_line() takes for a time.
std::string time_in(const base::Json& object) {
  for (std::string_view key : kTimes) {
    auto text = base::get_string(object, key);
    bool iso = text && text->size() >= 19 && text->size() <= 40 && text->find_first_not_of("0123456789") == 4;
    if (iso && ((*text)[4] == '-' || (*text)[4] == '/')) return *text + " ";
  }
  return "";
}

std::string rank_in(const base::Json& object) {
  for (std::string_view key : kRanks)
    if (auto rank = base::get_int(object, key); rank && *rank >= 0 && *rank < kMostRank) return fmt::format("[rank{}]: ", *rank);
  return "";
}

// Each line with the tags; empty lines between are dropped.
std::string tagged_lines(std::string_view text, const std::string& tags) {
  std::string out;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of("\r\n"), text.size());
    if (end > 0) out += (out.empty() ? "" : "\r") + tags + std::string(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::optional<std::string> message_of_json(std::string_view line) {
  size_t begin = line.find("{\"");
  if (begin == line.npos || begin > kMostInFront || line.size() > kMostLine) return std::nullopt;
  std::string_view object_text = base::trim(line.substr(begin));
  if (!object_text.ends_with('}')) return std::nullopt;
  auto object = base::parse_json(object_text);
  if (!object.ok() || !object->is_object()) return std::nullopt;
  std::string time = time_in(*object), rank = rank_in(*object);
  std::optional<std::string> message = message_in(*object);
  for (std::string_view key : kInside) {
    auto found = object->find(std::string(key));
    if (found == object->end() || !found->is_object()) continue;
    if (!message) message = message_in(*found);
    if (rank.empty()) rank = rank_in(*found);
  }
  if (!message) return std::nullopt;
  // A collector's message may itself be the JSON of the program; one level is enough.
  if (message->starts_with("{\""))
    if (auto inner = base::parse_json(base::trim(*message)); inner.ok() && inner->is_object())
      if (auto text = message_in(*inner)) {
        message = text;
        if (rank.empty()) rank = rank_in(*inner);
      }
  return tagged_lines(*message, std::string(line.substr(0, begin)) + time + rank);
}

}  // namespace phalanx::diagnosis
