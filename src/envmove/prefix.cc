#include "envmove/prefix.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "envmove/literals.h"

namespace phalanx::envmove {
namespace {

// A character of a path's name. What is beyond ASCII is part of one.
bool of_name(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || u >= 0x80 ||
         std::string_view("_-+~@").find(c) != std::string_view::npos;
}

// Punctuation of Chinese and Japanese text, U+3000 to U+303F and the wide forms of ASCII's, belongs to no name.
bool is_wide_punctuation(std::string_view character) {
  if (character.size() < 3) return false;
  const auto first = static_cast<unsigned char>(character[0]), second = static_cast<unsigned char>(character[1]),
             third = static_cast<unsigned char>(character[2]);
  if (first == 0xe3) return second == 0x80;
  return first == 0xef && second == 0xbc && ((third >= 0x81 && third <= 0x8f) || (third >= 0x9a && third <= 0xa0) || third >= 0xbb);
}

// Dots belong to a name if a name goes on behind them; those at the end of a sentence do not.
bool ends_name(std::string_view data, size_t at) {
  while (at < data.size() && data[at] == '.') ++at;
  if (data.substr(std::min(at, data.size())).starts_with("\\u")) return false;  // a character of a name as JSON spells it
  return at >= data.size() || !of_name(data[at]) || is_wide_punctuation(data.substr(at, 3));
}

// Not within a longer path: "/mnt/envs/llm". "-L/envs/llm", "@/envs/llm", "file:///envs/llm" and "//envs/llm" are whole.
bool begins_path(std::string_view data, size_t at) {
  if (at == 0) return true;
  const char before = data[at - 1], second = at > 1 ? data[at - 2] : ' ';
  if (before == '/') return (at >= 3 && data.substr(at - 3, 3) == "://") || (!of_name(second) && second != '.' && second != '/');
  if (!of_name(before) && before != '.') return true;
  if (second == '\\' && (before == 'n' || before == 't' || before == 'r')) return true;  // spelled in a literal
  if (at >= 3 && is_wide_punctuation(data.substr(at - 3, 3))) return true;
  size_t word = at;
  while (word > 0 && of_name(data[word - 1])) --word;
  const bool whole = word == 0 || (data[word - 1] != '/' && data[word - 1] != '.');
  if (data.substr(word, at - word) == "localhost") return word >= 3 && data.substr(word - 3, 3) == "://";
  return whole && (data[word] == '-' || (data[word] == '@' && word + 1 == at));
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
  explicit Hits(const Move& move) : move_(move), now_{move.new_prefix}, next_(move.old_prefixes.size()) {
    for (const Spelling spelling : kOtherSpellings)
      if (std::string other = spelled(move.new_prefix, spelling); other != move.new_prefix) now_.push_back(std::move(other));
  }

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
    while (at != std::string_view::npos) {
      const auto there = std::find_if(now_.begin(), now_.end(),
                                      [&](const std::string& now) { return move_.reads_as_new(old, now) && is_there(data, at, now); });
      if (there == now_.end()) return at;
      at = find_prefix(data, old, at + there->size());
    }
    return at;
  }

  const Move& move_;
  std::vector<std::string> now_;             // the new place, however it is spelled
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

// `text`, a string of a program that nobody prepared: every path at the length that it had, with slashes for what is missing. Such slashes,
// of an earlier move, are what a longer one takes. whole: it stands between two NULs.
Replaced replace_in_place(const std::string& text, const Move& move, bool whole, std::vector<std::string>& too_long) {
  Replaced out;
  size_t from = 0;
  Hits found(move);
  for (Hit hit = found.next(text, 0); hit.at != std::string::npos; hit = found.next(text, from)) {
    const size_t behind = hit.at + hit.length;
    size_t end = std::min(text.find_first_not_of('/', behind), text.size());
    if (end > behind) --end;  // one stays: it may stand before a name, or before what becomes one ("/old/%s")
    out.data.append(text, from, hit.at - from).append(move.new_prefix);
    const size_t had = end - hit.at, has = move.new_prefix.size();
    if (has > had) too_long.push_back(move.new_prefix + text.substr(end));
    else if (whole && hit.at == 0 && behind == text.size()) out.data.append(had - has, '\0');
    else out.data.append(had - has, '/');
    from = end;
    ++out.hits;
  }
  out.data.append(text, from);
  return out;
}

// One string of a program, from the hit to its NUL: replaced, and filled or grown within its room.
void replace_string(BinaryReplaced& out, size_t at, const Move& move, std::optional<size_t> prepared, const Encoding& encoding,
                    size_t& next) {
  const std::string text = encoding.unit == 1 ? std::string(std::string_view(out.data).substr(at, out.data.find('\0', at) - at))
                                              : narrow(out.data, at, encoding);
  const size_t end = at + text.size() * encoding.unit;
  next = end;
  if (!prepared) {
    const bool whole = at == 0 || (at >= encoding.unit && is_nul(out.data, at - encoding.unit, encoding.unit));
    Replaced now = replace_in_place(text, move, whole && is_nul(out.data, end, encoding.unit), out.too_long);
    out.hits += now.hits;
    if (now.data.size() == text.size()) out.data.replace(at, text.size() * encoding.unit, encode(now.data, encoding));
    return;
  }
  const size_t placeholder = *prepared;
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

void replace_in_encoding(BinaryReplaced& out, const Move& move, std::optional<size_t> placeholder, const Encoding& encoding) {
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

std::string in_ascii(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const base::Character one = base::first_character(path);
    if (one.length == 1) out += path[0];
    else if (one.code_point < 0x10000) out += fmt::format("\\u{:04x}", one.code_point);
    else out += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (one.code_point >> 10), 0xdc00 + (one.code_point & 0x3ff));
    path.remove_prefix(one.length);
  }
  return out;
}

// quote: of the literal around it; '\0': none. Then it is spelled as what it replaces.
std::string spelled_at(std::string_view place, char quote, Code code, Spelling spelling) {
  const bool literally = spelling == Spelling::kPlain || spelling == Spelling::kSingleQuoted || spelling == Spelling::kDoubleQuoted;
  if (code == Code::kShell && spelling == Spelling::kPlain && quote == '\'') return spelled(place, Spelling::kShell);
  return literally && quote != '\0' ? in_literal(place, quote) : spelled(place, spelling);
}

Replaced replace_paths(std::string_view data, const Move& move, Code code, Spelling spelling) {
  Replaced out;
  size_t from = 0;
  Hits found(move);
  Literals literals(data, code);
  for (Hit hit = found.next(data, 0); hit.at != std::string_view::npos; hit = found.next(data, from)) {
    out.data.append(data.substr(from, hit.at - from));
    out.data.append(spelled_at(move.new_prefix, literals.around(hit.at), code, spelling));
    from = hit.at + hit.length;
    ++out.hits;
  }
  out.data.append(data.substr(from));
  return out;
}

}  // namespace

size_t find_prefix(std::string_view data, std::string_view prefix, size_t from) {
  if (prefix.empty()) return std::string_view::npos;
  for (size_t at = data.find(prefix, from); at != std::string_view::npos; at = data.find(prefix, at + 1))
    if (ends_name(data, at + prefix.size()) && begins_path(data, at)) return at;
  return std::string_view::npos;
}

Replaced replace_text(std::string_view data, const Move& move) { return replace_paths(data, move, Code::kNone, Spelling::kPlain); }

Replaced replace_spellings(std::string_view data, const Move& move, Code code) {
  Replaced out = replace_paths(data, move, code, Spelling::kPlain);
  for (const Spelling spelling : kOtherSpellings) {
    const bool of_literals = spelling == Spelling::kSingleQuoted || spelling == Spelling::kDoubleQuoted;
    const bool of_shells = spelling == Spelling::kShell || spelling == Spelling::kShellOfPython;
    if (code == Code::kShell ? of_literals : of_shells) continue;
    Move other{{}, move.new_prefix};
    for (const std::string& old : move.old_prefixes)
      if (std::string text = spelled(old, spelling); text != old) other.old_prefixes.push_back(std::move(text));
    if (other.old_prefixes.empty()) continue;
    Replaced again = replace_paths(out.data, other, code, spelling);
    out.data = std::move(again.data);
    out.hits += again.hits;
  }
  return out;
}

std::string spelled(std::string_view path, Spelling spelling) {
  switch (spelling) {
    case Spelling::kPlain: break;
    case Spelling::kAscii: return in_ascii(path);
    case Spelling::kSingleQuoted: return in_literal(path, '\'');
    case Spelling::kDoubleQuoted: return in_literal(path, '"');
    case Spelling::kShell: return base::replace_all(path, "'", "'\\''");
    case Spelling::kShellOfPython: return base::replace_all(path, "'", "'\"'\"'");
  }
  return std::string(path);
}

BinaryReplaced replace_binary(std::string_view data, const Move& move, std::optional<size_t> placeholder_length) {
  BinaryReplaced out;
  out.data = data;
  replace_in_encoding(out, move, placeholder_length, {});
  if (is_ascii(move.new_prefix))
    for (const Encoding& encoding : kWide) replace_in_encoding(out, move, placeholder_length, encoding);
  return out;
}

}  // namespace phalanx::envmove
