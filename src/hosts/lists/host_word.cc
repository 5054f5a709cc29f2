#include "hosts/lists/host_word.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/name_ranges.h"
#include "base/unicode.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kLongestUser = 128;

bool fail_at(WordFault& fault, size_t at, std::string message, std::string hint) {
  fault = {at, std::move(message), std::move(hint)};
  return false;
}

bool plain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '+';
}

// The first character that may not stand in a name, or npos. Letters beyond ASCII may: an ssh alias can be any word.
size_t find_bad(std::string_view text, std::string_view also_good) {
  for (size_t i = 0; i < text.size();) {
    base::Character c = base::first_character(text.substr(i));
    bool good = c.code_point < 0x80 ? plain(static_cast<unsigned char>(text[i])) || also_good.find(text[i]) != std::string_view::npos
                                    : c.valid && base::display_width(c.code_point) > 0;
    if (!good) return i;
    i += c.length;
  }
  return std::string_view::npos;
}

std::string shown_character(std::string_view text, size_t at) {
  return base::quote(text.substr(at, base::first_character(text.substr(at)).length));
}

bool check_user(std::string_view user, WordFault& fault) {
  if (user.empty()) return fail_at(fault, 0, "the user before '@' is missing", "write user@host or host");
  if (user.size() > kLongestUser) return fail_at(fault, 0, base::counted("the user is longer than {} bytes", kLongestUser), "");
  if (user[0] == '-') return fail_at(fault, 0, "a user cannot start with '-'", "");
  size_t bad = find_bad(user, "@\\");  // user@realm@host and DOMAIN\user are what directory services hand out
  if (bad != std::string_view::npos)
    return fail_at(fault, bad, fmt::format("{} is not allowed in a user name", shown_character(user, bad)), "");
  return true;
}

// The end of the name in `text`: at a ':' outside brackets, or the end.
size_t name_end(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && depth > 0) --depth;
    if (text[i] == ':' && depth == 0) return i;
  }
  return text.size();
}

bool take_ipv6(std::string_view text, size_t at, HostWord& word, WordFault& fault) {
  size_t close = text.find(']');
  std::string_view address = text.substr(1, close - 1);
  if (!is_ipv6(address))
    return fail_at(fault, at, fmt::format("{} is not an IPv6 address", base::quote(address)), "write an address such as [fd00::1]");
  word.addresses = {std::string(address)};
  word.rest = text.substr(close + 1);
  if (!word.rest.empty() && word.rest[0] != ':')
    return fail_at(fault, at + close + 1, fmt::format("unexpected {} after the address", base::quote(word.rest)), "");
  return true;
}

bool check_name(std::string_view name, size_t at, WordFault& fault) {
  if (name.empty()) return fail_at(fault, at, "the host name is missing", "");
  if (name[0] == '-') return fail_at(fault, at, "a host name cannot start with '-'", "");
  size_t bad = find_bad(name, "[],");
  if (bad != std::string_view::npos)
    return fail_at(fault, at + bad, fmt::format("{} is not allowed in a host name", shown_character(name, bad)), "");
  size_t depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '[') ++depth;
    if (name[i] == ']' && depth > 0) --depth;
    if (name[i] == ',' && depth == 0) return fail_at(fault, at + i, "',' is not allowed in a host name", "");
  }
  return true;
}

}  // namespace

bool is_ipv6(std::string_view text) {
  size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    std::string_view zone = text.substr(percent + 1);
    if (zone.empty() || zone.size() > 32 || find_bad(zone, "") != std::string_view::npos) return false;
  }
  std::string address(text.substr(0, percent));
  in6_addr parsed;
  return address.find('\0') == std::string::npos && inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

bool parse_host_word(std::string_view text, size_t most, HostWord& word, WordFault& fault) {
  size_t at = 0;
  size_t scheme = text.find("://");
  if (scheme != std::string_view::npos)
    return fail_at(fault, 0, fmt::format("{} is not a host address", base::quote(text)), "write user@host, without scheme or path");
  size_t sign = text.rfind('@');
  if (sign != std::string_view::npos) {
    if (!check_user(text.substr(0, sign), fault)) return false;
    word.user = text.substr(0, sign);
    at = sign + 1;
    text.remove_prefix(at);
  }
  size_t close = text.find(']');
  if (text.starts_with('[') && close != std::string_view::npos && text.substr(0, close).find(':') != std::string_view::npos)
    return take_ipv6(text, at, word, fault);
  size_t end = name_end(text);
  std::string_view name = text.substr(0, end);
  word.rest = text.substr(end);
  if (word.rest.find(':', 1) != std::string_view::npos && text.find('[') == std::string_view::npos) {
    std::string hint = is_ipv6(text) ? fmt::format("write an IPv6 address between brackets: [{}]", text)
                                     : "write host:slots, and an IPv6 address between brackets: [fd00::1]:4";
    return fail_at(fault, at, fmt::format("{} has more than one ':'", base::quote(text)), std::move(hint));
  }
  if (!check_name(name, at, fault)) return false;
  base::RangeFault range;
  auto names = base::expand_names(name, most, &range);
  if (!names.ok()) return fail_at(fault, at + range.at, range.message, range.hint);
  word.addresses = std::move(names).value();
  for (const std::string& one : word.addresses)
    if (one[0] == '-') return fail_at(fault, at, "a host name cannot start with '-'", "");
  return true;
}

}  // namespace phalanx::hosts
