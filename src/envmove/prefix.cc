#include "envmove/prefix.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::envmove {
namespace {

// A character of a path's name. What is beyond ASCII is part of one.
bool of_name(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || u >= 0x80 ||
         std::string_view("_-+~@").find(c) != std::string_view::npos;
}

// Dots belong to a name if a name goes on behind them; those at the end of a sentence do not.
bool ends_name(std::string_view data, size_t at) {
  while (at < data.size() && data[at] == '.') ++at;
  return at >= data.size() || !of_name(data[at]);
}

// Not within a longer path: "/mnt/envs/llm". "-L/envs/llm" and "file:///envs/llm" are whole.
bool begins_path(std::string_view data, size_t at) {
  if (at == 0) return true;
  const char before = data[at - 1];
  if (before == '/') return at >= 3 && data.substr(at - 3, 3) == "://";
  if (!of_name(before) && before != '.') return true;
  size_t word = at;
  while (word > 0 && of_name(data[word - 1])) --word;
  return data[word] == '-' && (word == 0 || (data[word - 1] != '/' && data[word - 1] != '.'));
}

bool is_there(std::string_view data, size_t at, std::string_view prefix) {
  return data.substr(at).starts_with(prefix) && ends_name(data, at + prefix.size());
}

struct Hit {
  size_t at = std::string_view::npos;
  size_t length = 0;  // of the old prefix
};

// Old prefixes in the order in which they stand in the data; of two at one place, the longer. What reads as the new place is passed over.
// Where each of them stands next is remembered: a file that names one of them a million times is not searched a million times for the
// others.
class Hits {
 public:
  explicit Hits(const Move& move) : move_(move), next_(move.old_prefixes.size()) {}

  // `from` never falls; what lies behind it stays as it is.
  Hit next(std::string_view data, size_t from) {
    Hit best;
    for (size_t i = 0; i < next_.size(); ++i) {
      const std::string& old = move_.old_prefixes[i];
      if (!next_[i] || *next_[i] < from) next_[i] = find(data, old, from);
      const size_t at = *next_[i];
      if (at == std::string_view::npos) continue;
      if (at < best.at || (at == best.at && old.size() > best.length)) best = {at, old.size()};
    }
    return best;
  }

 private:
  size_t find(std::string_view data, const std::string& old, size_t from) const {
    size_t at = find_prefix(data, old, from);
    while (at != std::string_view::npos && is_there(data, at, move_.new_prefix)) at = find_prefix(data, old, at + move_.new_prefix.size());
    return at;
  }

  const Move& move_;
  std::vector<std::optional<size_t>> next_;  // of each old prefix; npos: it stands nowhere any more
};

// UTF-16 and UTF-32 of an ASCII or UTF-8 text whose characters are all ASCII; others are left to UTF-8.
struct Encoding {
  size_t unit = 1;      // bytes of a character
  size_t position = 0;  // of the byte that is not zero
};
constexpr Encoding kWide[] = {{2, 0}, {2, 1}, {4, 0}, {4, 3}};

std::string encode(std::string_view text, const Encoding& encoding) {
  std::string out(text.size() * encoding.unit, '\0');
  for (size_t i = 0; i < text.size(); ++i) out[i * encoding.unit + encoding.position] = text[i];
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The string of units from `at` to its NUL, as bytes that can be searched; stops at a unit that is not ASCII.
std::string narrow(std::string_view data, size_t at, const Encoding& encoding) {
  std::string out;
  for (; at + encoding.unit <= data.size(); at += encoding.unit) {
    std::string_view unit = data.substr(at, encoding.unit);
    for (size_t i = 0; i < unit.size(); ++i)
      if (i != encoding.position && unit[i] != '\0') return out;
    if (unit[encoding.position] == '\0' || static_cast<unsigned char>(unit[encoding.position]) >= 0x80) return out;
    out += unit[encoding.position];
  }
  return out;
}

bool is_nul(std::string_view data, size_t at, size_t unit) {
  return at + unit <= data.size() && std::all_of(data.begin() + static_cast<ptrdiff_t>(at),
                                                 data.begin() + static_cast<ptrdiff_t>(at + unit), [](char c) { return c == '\0'; });
}

// One string of a program, from the hit to its NUL: replaced, and filled or grown within its room.
void replace_string(BinaryReplaced& out, size_t at, const Move& move, size_t placeholder, const Encoding& encoding, size_t& next) {
  const std::string text = encoding.unit == 1 ? std::string(std::string_view(out.data).substr(at, out.data.find('\0', at) - at))
                                              : narrow(out.data, at, encoding);
  const size_t end = at + text.size() * encoding.unit;
  next = end;
  std::string now;
  size_t from = 0, room = 0, hits = 0;
  Hits found(move);
  for (Hit hit = found.next(text, 0); hit.at != std::string::npos; hit = found.next(text, from)) {
    now += text.substr(from, hit.at - from) + move.new_prefix;
    from = hit.at + hit.length;
    room += placeholder > hit.length ? placeholder - hit.length : 0;
    ++hits;
  }
  if (hits == 0) return;
  now += text.substr(from);
  size_t free = 0;  // NULs behind the one that ends the string
  while (free < room && is_nul(out.data, end + (free + 1) * encoding.unit, encoding.unit)) ++free;
  if (now.size() > text.size() + free) {
    out.too_long.push_back(now);
    return;
  }
  std::string bytes = encode(now, encoding);
  bytes.resize(std::max(text.size(), now.size()) * encoding.unit, '\0');
  out.data.replace(at, bytes.size(), bytes);
  out.hits += hits;
  next = at + bytes.size();
}

void replace_in_encoding(BinaryReplaced& out, const Move& move, size_t placeholder, const Encoding& encoding) {
  Hits found(move);
  std::vector<std::pair<std::string, size_t>> wide;  // and where each stands next
  for (const std::string& old : move.old_prefixes)
    if (encoding.unit > 1 && is_ascii(old)) wide.emplace_back(encode(old, encoding), out.data.find(encode(old, encoding)));
  for (size_t from = 0;;) {
    size_t at = encoding.unit == 1 ? found.next(out.data, from).at : std::string::npos;
    for (auto& [text, next] : wide) {
      if (next < from) next = out.data.find(text, from);
      at = std::min(at, next);
    }
    if (at == std::string::npos) return;
    size_t next = at + encoding.unit;
    replace_string(out, at, move, placeholder, encoding, next);
    from = std::max(next, at + encoding.unit);
  }
}

}  // namespace

size_t find_prefix(std::string_view data, std::string_view prefix, size_t from) {
  if (prefix.empty()) return std::string_view::npos;
  for (size_t at = data.find(prefix, from); at != std::string_view::npos; at = data.find(prefix, at + 1))
    if (ends_name(data, at + prefix.size()) && begins_path(data, at)) return at;
  return std::string_view::npos;
}

Replaced replace_text(std::string_view data, const Move& move) {
  Replaced out;
  size_t from = 0;
  Hits found(move);
  for (Hit hit = found.next(data, 0); hit.at != std::string_view::npos; hit = found.next(data, from)) {
    out.data.append(data.substr(from, hit.at - from)).append(move.new_prefix);
    from = hit.at + hit.length;
    ++out.hits;
  }
  out.data.append(data.substr(from));
  return out;
}

BinaryReplaced replace_binary(std::string_view data, const Move& move, size_t placeholder_length) {
  BinaryReplaced out;
  out.data = data;
  replace_in_encoding(out, move, placeholder_length, {});
  if (is_ascii(move.new_prefix))
    for (const Encoding& encoding : kWide) replace_in_encoding(out, move, placeholder_length, encoding);
  return out;
}

}  // namespace phalanx::envmove
