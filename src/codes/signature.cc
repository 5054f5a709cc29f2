#include "codes/signature.h"

#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const Signature> signatures() {
  static const std::vector<Signature> rows = [] {
    std::vector<Signature> out;
    for (std::string_view row : base::split_lines(unpack(packed_signatures()))) {
      Signature& signature = out.emplace_back();
      signature.code = next_cell(row);
      signature.role = static_cast<Role>(next_cell(row).at(0) - '0');
      for (std::string_view Signature::* cell : {&Signature::literal, &Signature::pattern, &Signature::line})
        signature.*cell = next_cell(row);
    }
    return out;
  }();
  return rows;
}

std::vector<std::string_view> signature_others() { return base::split_lines(unpack(packed_others())); }

}  // namespace phalanx::codes
