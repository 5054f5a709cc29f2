#include "doctor/checks/rendezvous/random_port.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace phalanx::doctor {
namespace {

constexpr size_t kMostLine = 400;

// Whole numbers in a piece of text, in order; at most eight.
std::vector<int> numbers(std::string_view text) {
  std::vector<int> all;
  for (size_t i = 0; i < text.size() && all.size() < 8;) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    base::Result<int64_t> value = base::parse_int(text.substr(begin, i - begin), 0, 65'535);
    if (value.ok()) all.push_back(static_cast<int>(*value));
  }
  return all;
}

std::optional<RandomPort> range(int low, int high) {
  if (low < 1 || high > 65'535 || low > high || high < 1024) return std::nullopt;
  RandomPort port;
  port.low = low;
  port.high = high;
  return port;
}

// random.randint(A, B) with both ends, and what is added on either side.
std::optional<RandomPort> python(std::string_view line, size_t at) {
  size_t open = line.find('(', at), close = open == std::string_view::npos ? open : line.find(')', open);
  if (close == std::string_view::npos) return std::nullopt;
  std::vector<int> ends = numbers(line.substr(open, close - open));
  if (ends.size() != 2) return std::nullopt;
  std::string_view before = line.substr(0, at), after = line.substr(close + 1);
  int added = 0;
  size_t plus = before.rfind('+');
  if (plus != std::string_view::npos) {
    std::vector<int> left = numbers(before.substr(0, plus));
    if (!left.empty()) added = left.back();
  } else if (std::string_view rest = base::trim(after); !rest.empty() && rest[0] == '+') {
    std::vector<int> right = numbers(rest);
    if (!right.empty()) added = right[0];
  }
  return range(ends[0] + added, ends[1] + added);
}

// $((RANDOM % 1000 + 20000)), $((20000 + RANDOM % 1000)).
std::optional<RandomPort> shell(std::string_view line, size_t at) {
  size_t percent = line.find('%', at);
  if (percent == std::string_view::npos) return std::nullopt;
  std::vector<int> after = numbers(line.substr(percent)), before = numbers(line.substr(0, at));
  if (after.empty() || after[0] < 1) return std::nullopt;
  int added = after.size() > 1 ? after[1] : before.empty() ? 0 : before.back();
  return range(added, added + after[0] - 1);
}

}  // namespace

std::optional<RandomPort> random_port(std::string_view text) {
  int number = 0;
  for (std::string_view line : base::split_lines(text)) {
    ++number;
    line = base::trim(line).substr(0, kMostLine);
    if (line.empty() || line[0] == '#' || base::to_lower(line).find("port") == std::string::npos) continue;
    std::optional<RandomPort> port;
    if (size_t at = line.find("random.randint("); at != std::string_view::npos) port = python(line, at);
    else if (size_t shell_at = line.find("RANDOM"); shell_at != std::string_view::npos) port = shell(line, shell_at);
    if (!port) continue;
    port->line = number;
    port->text = std::string(line.substr(0, 80));
    return port;
  }
  return std::nullopt;
}

}  // namespace phalanx::doctor
