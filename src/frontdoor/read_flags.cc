#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/peer_flags.h"

namespace phalanx::frontdoor {
namespace {

using base::Result;
using base::Status;

using base::usage;

bool is_number(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class FlagReader {
 public:
  FlagReader(std::string_view peer, std::span<const PeerFlag> table, bool abbreviations, std::span<const std::string> words)
      : peer_(peer), table_(table), abbreviations_(abbreviations), words_(words) {}

  Result<ReadFlags> read() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_];
      if (word == "--") {
        ++next_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') break;
      ++next_;
      TRY(word[1] == '-' ? take_long(word) : take_short(word));
    }
    read_.rest.assign(words_.begin() + static_cast<ptrdiff_t>(next_), words_.end());
    return std::move(read_);
  }

 private:
  bool has_name(const PeerFlag& flag, std::string_view name) const {
    for (std::string_view one : base::split(flag.names, '|'))
      if (one == name) return true;
    return false;
  }

  const PeerFlag* find(std::string_view name) const {
    for (const PeerFlag& flag : table_)
      if (has_name(flag, name)) return &flag;
    return nullptr;
  }

  // The one flag that begins with the name; null: none, or several (`several` lists them).
  const PeerFlag* find_beginning(std::string_view name, std::string& several) const {
    const PeerFlag* found = nullptr;
    for (const PeerFlag& flag : table_) {
      if (!flag.name().starts_with(name) || flag.name().size() == 1) continue;
      several += fmt::format("{}--{}", several.empty() ? "" : ", ", flag.name());
      found = found ? &flag : found;
      if (!found) found = &flag;
    }
    return several.find(',') == std::string::npos ? found : nullptr;
  }

  base::Error unknown(std::string_view typed, const std::string& several) const {
    std::string message = fmt::format("{} has no option {}", peer_, base::printable(typed));
    if (!several.empty()) return usage(fmt::format("{}: {} may be {}", peer_, base::printable(typed), several), "write it in full");
    std::vector<std::string> names;
    for (const PeerFlag& flag : table_)
      for (std::string_view one : base::split(flag.names, '|'))
        if (one.size() > 1) names.emplace_back(one);
    const std::string dashed = base::replace_all(typed.substr(2), "_", "-");
    if (auto near = base::closest(dashed, names)) return usage(std::move(message), fmt::format("did you mean --{}?", *near));
    return usage(std::move(message), "options of phalanx run come before the launcher; options of your script come after it");
  }

  Status take_long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string typed = word.substr(0, equals);
    const std::string name = base::replace_all(std::string_view(typed).substr(2), "_", "-");
    const PeerFlag* flag = name.size() > 1 ? find(name) : nullptr;
    std::string several;
    if (!flag && abbreviations_ && name.size() > 1) flag = find_beginning(name, several);
    if (!flag) return unknown(typed, several);
    if (equals != std::string::npos && !flag->takes_value)
      return usage(fmt::format("{}: {} takes no value: {}", peer_, typed, base::quote(word)), fmt::format("write {}", typed));
    if (equals != std::string::npos) return add(*flag, typed, word.substr(equals + 1));
    return flag->takes_value ? take_next(*flag, typed) : add(*flag, typed, "");
  }

  Status take_short(const std::string& word) {
    const PeerFlag* flag = find(std::string_view(word).substr(1, 1));
    if (!flag)
      return usage(fmt::format("{} has no option {}", peer_, base::printable(word)),
                   "options of phalanx run come before the launcher; options of your script come after it");
    const std::string typed = word.substr(0, 2);
    if (!flag->takes_value && word.size() > 2)
      return usage(fmt::format("{}: {} takes no value: {}", peer_, typed, base::quote(word)), fmt::format("write {}", typed));
    if (!flag->takes_value) return add(*flag, typed, "");
    return word.size() > 2 ? add(*flag, typed, word.substr(word[2] == '=' ? 3 : 2)) : take_next(*flag, typed);
  }

  Status take_next(const PeerFlag& flag, const std::string& typed) {
    if (next_ == words_.size()) return usage(fmt::format("{}: {} needs a value", peer_, typed), fmt::format("write {}=VALUE", typed));
    const std::string& word = words_[next_];
    if (word.size() > 1 && word[0] == '-' && !is_number(word))
      return usage(fmt::format("{}: {} needs a value, but {} follows", peer_, typed, base::quote(word)),
                   fmt::format("write {}=VALUE", typed));
    ++next_;
    return add(flag, typed, word);
  }

  Status add(const PeerFlag& flag, const std::string& typed, const std::string& value) {
    GivenFlag given{&flag, typed, value, value.find("${") == std::string::npos};
    for (GivenFlag& before : read_.flags)
      if (before.flag == &flag) {
        before = std::move(given);
        return base::ok();
      }
    read_.flags.push_back(std::move(given));
    return base::ok();
  }

  std::string_view peer_;
  std::span<const PeerFlag> table_;
  bool abbreviations_;
  std::span<const std::string> words_;
  size_t next_ = 0;
  ReadFlags read_;
};

}  // namespace

const GivenFlag* ReadFlags::find(std::string_view name) const {
  for (const GivenFlag& given : flags)
    if (given.flag->name() == name) return &given;
  return nullptr;
}

Result<ReadFlags> read_flags(std::string_view peer, std::span<const PeerFlag> table, bool abbreviations,
                             std::span<const std::string> words) {
  return FlagReader(peer, table, abbreviations, words).read();
}

}  // namespace phalanx::frontdoor
