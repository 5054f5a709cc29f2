// A conversation as a fine-tuning learns from it: user and assistant in turn, the last word the assistant's.
#pragma once

#include <string>
#include <vector>

namespace phalanx::tune {

struct Conversation {
  std::vector<std::string> messages;  // user, assistant, user, assistant, …: an even number
  std::string system;                 // empty: the template's own, if it has one
};

// A conversation that ends with the user, and two answers to it.
struct Preference {
  Conversation prompt;  // messages: an odd number
  std::string chosen, rejected;
};

}  // namespace phalanx::tune
