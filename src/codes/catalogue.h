// What other software can print, derived from its sources: codes/catalogue/<source>.tsv, made by tools/make_catalogue. A message is known
// by the shortest words that distinguish it from all others; its text is not kept. A match gives the source and the file, and is no
// diagnosis: that is what signatures are for.
#pragma once

#include <span>
#include <string_view>

namespace phalanx::codes {

struct KnownMessage {
  std::string_view source;       // "nccl": the name of its file
  std::string_view file;         // below the source's own folder
  std::string_view severity;     // "error" or "warning"
  std::string_view words, then;  // both stand in the message, in this order; `then` may be empty
};

// All of them, ordered by source. Unpacked at the first call.
std::span<const KnownMessage> known_messages();

}  // namespace phalanx::codes
