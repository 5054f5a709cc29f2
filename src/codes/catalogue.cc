#include "codes/catalogue.h"

#include <iterator>
#include <vector>

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const KnownMessage> known_messages() {
  static const std::vector<KnownMessage> rows = [] {
    constexpr std::string_view KnownMessage::* kColumns[] = {&KnownMessage::source, &KnownMessage::file, &KnownMessage::severity,
                                                             &KnownMessage::words, &KnownMessage::then};
    const std::vector<std::string_view> cells = base::split_lines(unpack(packed_catalogue()));  // column by column
    std::vector<KnownMessage> out(cells.size() / std::size(kColumns));
    for (size_t i = 0; i < cells.size(); ++i) out[i % out.size()].*kColumns[i / out.size()] = cells[i];
    return out;
  }();
  return rows;
}

}  // namespace phalanx::codes
