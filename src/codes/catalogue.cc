#include "codes/catalogue.h"

#include <vector>

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const KnownMessage> known_messages() {
  static const std::vector<KnownMessage> rows = [] {
    std::vector<KnownMessage> out;
    for (std::string_view row : base::split_lines(unpack(packed_catalogue()))) {
      KnownMessage& message = out.emplace_back();
      using Cell = std::string_view KnownMessage::*;
      for (Cell cell : {&KnownMessage::source, &KnownMessage::file, &KnownMessage::severity, &KnownMessage::words, &KnownMessage::then,
                        &KnownMessage::first, &KnownMessage::last})
        message.*cell = next_cell(row);
    }
    return out;
  }();
  return rows;
}

}  // namespace phalanx::codes
