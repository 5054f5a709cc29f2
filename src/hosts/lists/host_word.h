// One host as a word: [user@]name, [user@]gpu[01-04], [user@][fd00::1]. Shared by -H and hostfiles. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::hosts {

// Names that pass may be handed to ssh as one argument: they hold no blank, no control character, nothing a shell or ssh
// reads otherwise, and no '-' in front.
struct HostWord {
  std::string user;
  std::vector<std::string> addresses;  // at least one; without the brackets of IPv6
  std::string_view rest;               // what follows the name: ":4", or nothing
};

// What is wrong, and at which byte of the text.
struct WordFault {
  size_t at = 0;
  std::string message;
  std::string hint;
};

// `text` must hold no blank. `most`: names it may expand to.
bool parse_host_word(std::string_view text, size_t most, HostWord& word, WordFault& fault);

// An IPv6 address as inet_pton(3) reads it, with an optional %zone.
bool is_ipv6(std::string_view text);

}  // namespace phalanx::hosts
