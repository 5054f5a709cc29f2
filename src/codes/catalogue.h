// What other software can print, derived from its sources: codes/catalogue/<source>.tsv, made by tools/make_catalogue. A message is known
// by the shortest words that distinguish it from all others; its text is not kept. What people have written about it stands in
// codes/annotations/<source>.tsv: the code that it stands for, and the answer, what it means and what to do. A message without an
// annotation is attributed to its source and file, which is no diagnosis.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "codes/signature.h"

namespace phalanx::codes {

struct KnownMessage {
  std::string_view source;       // "nccl": the name of its file
  std::string_view file;         // below the source's own folder
  std::string_view severity;     // "error" or "warning"
  std::string_view words, then;  // both stand in the message, in this order; `then` may be empty
  std::string_view code;         // with its answer: what the message stands for wherever it is printed; empty: nothing by itself
  Role role = Role::kRoot;       // of the code
  std::optional<size_t> answer;  // its number
};

struct Answer {
  std::string_view english, chinese;  // {1}: what the message has between `words` and `then`
};

// All of them, ordered by source. Unpacked at the first call.
std::span<const KnownMessage> known_messages();

// What the message means, and what to do; nothing: nobody has written it. Unpacked at the first call.
std::optional<Answer> answer_of(const KnownMessage& message);

}  // namespace phalanx::codes
