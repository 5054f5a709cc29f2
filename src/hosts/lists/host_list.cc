#include "hosts/lists/host_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "hosts/connect/host_collector.h"
#include "hosts/lists/host_word.h"

namespace phalanx::hosts {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

struct Item {
  std::string_view text;
  size_t at;  // byte in the whole argument
};

// Between commas that stand outside brackets, blanks around each taken off.
std::vector<Item> split_items(std::string_view text) {
  std::vector<Item> items;
  size_t begin = 0;
  size_t depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']' && depth > 0) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    std::string_view item = base::trim(text.substr(begin, i - begin));
    size_t at = item.empty() ? begin : static_cast<size_t>(item.data() - text.data());
    items.push_back({item, at});
    begin = i + 1;
  }
  return items;
}

class ArgumentReader {
 public:
  ArgumentReader(std::string_view text, std::string_view label, ErrorKind kind) : text_(text), label_(label), kind_(kind) {}

  // with_slots: "host:4" and "user@host" are allowed.
  Result<HostList> read(bool with_slots) {
    if (base::trim(text_).empty()) return base::fail(kind_, fmt::format("{} names no host", label_));
    HostCollector hosts;
    for (const Item& item : split_items(text_)) {
      HostWord word;
      WordFault fault;
      if (item.text.empty()) return wrong(item.at, {0, "a host is missing between two commas", "remove the extra comma"});
      if (!parse_host_word(item.text, kMostHosts, word, fault)) return wrong(item.at, fault);
      HostSpec pattern;
      pattern.user = word.user;
      pattern.source = label_;
      size_t rest_at = static_cast<size_t>(word.rest.data() - item.text.data());
      if (!with_slots && (!word.rest.empty() || !word.user.empty()))
        return wrong(item.at, {0, fmt::format("{} is not a valid name", base::quote(item.text)), ""});
      if (!word.rest.empty()) {
        auto slots = base::parse_int(word.rest.substr(1), 1, kMostSlots, kind_);
        if (!slots.ok()) return wrong(item.at, {rest_at + 1, "slots: " + slots.error().message, "write host:slots, for example gpu01:8"});
        pattern.slots = static_cast<int>(*slots);
      }
      if (auto problem = hosts.add(pattern, word.addresses)) return wrong(item.at, {0, problem->message, problem->hint});
    }
    return hosts.finish();
  }

 private:
  Error wrong(size_t item_at, const WordFault& fault) const {
    size_t at = std::min(item_at + fault.at, text_.size());
    return base::fail(kind_, fmt::format("{}, character {}", label_, character_number(text_, at)) + ": " + fault.message)
        .with_hint(fault.hint);
  }

  std::string_view text_;
  std::string label_;
  ErrorKind kind_;
};

}  // namespace

Result<HostList> parse_host_argument(std::string_view text, std::string_view flag) {
  return ArgumentReader(text, flag, ErrorKind::kUsage).read(/*with_slots=*/true);
}

Result<HostList> parse_node_list(std::string_view text, std::string_view source) {
  return ArgumentReader(text, source, ErrorKind::kConfig).read(/*with_slots=*/false);
}

}  // namespace phalanx::hosts
